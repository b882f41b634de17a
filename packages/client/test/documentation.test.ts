/** What docs/sdk.md says is tried: its program runs, its tables are the code's. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { exitCodes } from '../src/courier/exit.ts';
import { RelayWithClients } from './support/relay-with-clients.ts';

const root = join(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/sdk.md'), 'utf8');

test('the program of the page runs and prints what the page says', async () => {
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string);
  expect(blocks.length).toBeGreaterThan(5);
  const promised = [...blocks.join('').matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(
    ([, shown]) => shown,
  );
  await using world = await RelayWithClients.start();
  const child = spawn(process.execPath, ['--input-type=module-typescript'], {
    cwd: join(root, 'packages/client'),
    env: { ...process.env, RELAY_FOLDER: join(world.folder, 'relay') },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(blocks.join('\n'));
  const [out, error, exit] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve) => child.once('exit', resolve)),
  ]);
  expect({ error, exit }).toEqual({ error: '', exit: 0 });
  expect(out.trimEnd().split('\n')).toEqual(promised);
});

test('the page has every exit status of courier', () => {
  const rows = [...page.matchAll(/^\| +(\d+) \| (.*?) *\|$/gm)].map(([, code, meaning]) => ({
    code: Number(code),
    meaning,
  }));
  expect(rows).toEqual(Object.values(exitCodes));
});

test('the page has every code of a failure', () => {
  const source = readFileSync(join(import.meta.dirname, '../src/errors.ts'), 'utf8');
  const union = /export type ClientErrorCode =(.*?);\n\n/s.exec(source)?.[1] ?? '';
  const codes = [...union.matchAll(/'([a-z_]+)'/g)].map(([, code]) => code as string);
  expect(codes).toContain('invalid_input');
  expect(codes.filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});
