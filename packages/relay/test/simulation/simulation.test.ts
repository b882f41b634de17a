import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const main = fileURLToPath(new URL('main.ts', import.meta.url));

/** Runs the command; rejects if a rule is broken. */
async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--workers', '1', ...args]);
  return stdout;
}

test('a seed replays exactly, event by event', async () => {
  const one = ['--seeds', '1', '--from', '6', '--minutes', '0.2'];
  const runs = await Promise.all([simulate(...one), simulate(...one)]);
  const [first, second] = runs.map((output) => /^digest (\S{16})$/m.exec(output)?.[1]);
  expect(first).toBeDefined();
  expect(second).toBe(first);
});

test('seeds that once broke a rule break none', async () => {
  expect(await simulate('--kept')).toContain('no rule broken');
});

test('a relay that is broken on purpose is found', async () => {
  const names = ['no-flush', 'early-flush', 'removed-device'];
  const asked = names.flatMap((name) => ['--defect', name]);
  const output = await simulate('--defects', '--seeds', '3', ...asked);
  for (const name of names) expect(output).toMatch(new RegExp(`^${name} .*: seed \\d`, 'm'));
});
