/** `posthouse dev` as a developer runs it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inputLines } from '../../src/commands/dev-console.ts';
import { type Command, killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { HttpClient } from '../support/http.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => {
  killAll();
  folder[Symbol.dispose]();
});

/** Starts the command; its temporary folders are in a folder of the test. */
const dev = (...args: string[]) =>
  posthouse(['dev', ...args], { TMPDIR: folder.path }, { keepInputOpen: true });

const enter = ({ child }: Command, text: string) => child.stdin?.write(text);

/** Waits for a text on standard error. */
async function noted({ output }: Command, text: string | RegExp): Promise<void> {
  await expect.poll(() => output.errors, { timeout: 30_000 }).toMatch(text);
}

async function challengeEnd(ready: string, ca: string): Promise<number> {
  using client = new HttpClient(ready.split(' ')[1] as string, ca);
  const account = 'neo:0:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';
  const answer = await client.call('auth.challenge', { account });
  return (JSON.parse(answer.text) as { expires_at: number }).expires_at;
}

describe('posthouse dev', () => {
  test('prints a ready line for each relay, then registry and authority; SIGTERM removes all', async () => {
    const network = dev('--relays', '2', '--service', 'post');
    const lines = await network.lines(2);
    for (const [index, name] of ['a', 'b'].entries()) {
      expect(lines[index]).toMatch(
        new RegExp(
          '^ready https://127\\.0\\.0\\.1:(\\d+)/post/v1 wss://127\\.0\\.0\\.1:\\1/post/v1 ' +
            `0x[0-9a-f]{40} neo:0:0x0{40} ${name}$`,
        ),
      );
    }
    await noted(network, 'NODE_EXTRA_CA_CERTS');
    const [registry = '', authority = '', , variable] = network.output.errors.split('\n');
    const file = registry.replace('registry ', '');
    const caFile = authority.replace('certificate authority ', '');
    expect(variable).toBe(`NODE_EXTRA_CA_CERTS=${caFile}`);
    const listed = JSON.parse(readFileSync(file, 'utf8')).relays as { relay_id: string }[];
    const ids = lines.map((line) => line.split(' ')[3]);
    expect(listed.map(({ relay_id }) => relay_id).sort()).toEqual(ids.sort());
    for (const line of lines) {
      using client = new HttpClient(line.split(' ')[1] as string, readFileSync(caFile, 'utf8'));
      const info = JSON.parse((await client.call('relay.info', {})).text);
      expect(ids).toContain(info.relay_id);
    }
    expect(readdirSync(folder.path)).toHaveLength(1);
    network.child.kill('SIGTERM');
    expect(await network.ended).toBe(0);
    expect(network.output.text.split('\n')).toHaveLength(3);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test('lines of standard input move clocks, stop and start relays; wrong ones change nothing', async () => {
    const data = join(folder.path, 'network');
    const network = dev('--relays', '2', '--data', data);
    const [a = '', b = ''] = await network.lines(2);
    const ca = readFileSync(join(data, 'tls', 'ca.pem'), 'utf8');
    const before = await challengeEnd(a, ca);
    enter(network, 'clock +3600\nclock b -600\n');
    await noted(network, /(?:clock [ab] .*Z\n){3}/);
    const ahead = async (ready: string) => (await challengeEnd(ready, ca)) - before;
    expect(await ahead(a)).toBeGreaterThanOrEqual(3_600);
    expect(await ahead(a)).toBeLessThan(3_700);
    expect(await ahead(b)).toBeGreaterThanOrEqual(3_000);
    expect(await ahead(b)).toBeLessThan(3_100);

    enter(network, 'stop b\nstop b\n');
    await noted(network, 'relay b is stopped\nrelay b is stopped already\n');
    await expect(challengeEnd(b, ca)).rejects.toThrow(/ECONNREFUSED/);
    enter(network, 'start b\nstart b\n');
    expect((await network.lines(3))[2]).toBe(b);
    await noted(network, 'relay b runs already\n');
    // A relay that was stopped has the clock that it had.
    expect(await ahead(b)).toBeLessThan(3_100);
    expect(await ahead(b)).toBeGreaterThanOrEqual(3_000);

    const wrong = [
      ['clock', 'there is no line "clock": enter help for all lines'],
      ['clock 3600', 'clock: expected seconds as +3600 or -60, found "3600"'],
      ['clock c +1', 'there is no relay c: the relays are a, b'],
      ['clock +9999999999', 'the clock can be moved by up to 100 years: give fewer seconds'],
      ['stop', 'there is no line "stop": enter help for all lines'],
      ['\u001b[2J', 'there is no line "\\u001b[2J": enter help for all lines'],
    ] as const;
    for (const [line, answer] of wrong) {
      const said = network.output.errors.length;
      enter(network, `${line}\r\n`);
      await expect.poll(() => network.output.errors.slice(said)).toBe(`${answer}\n`);
    }
    enter(network, '\nhelp\n');
    await noted(network, 'start b         starts it again, with the same keys, data and port');
    // The end of standard input ends no relay.
    network.child.stdin?.end('clock a -3600');
    await expect.poll(() => ahead(a)).toBeLessThan(100);
    network.child.kill('SIGINT');
    expect(await network.ended).toBe(0);
    expect(existsSync(join(data, 'registry.json'))).toBe(true);
  });

  test('with --data, the next network has the same keys and ports, also after SIGKILL', async () => {
    const first = dev('--relays', '2', '--data', folder.path);
    const before = await first.lines(2);
    first.child.kill('SIGKILL');
    expect(await first.ended).toBe('SIGKILL');
    const second = dev('--relays', '3', '--data', folder.path);
    const after = await second.lines(3);
    expect(after.slice(0, 2)).toEqual(before);
    second.child.kill('SIGTERM');
    expect(await second.ended).toBe(0);
  });

  test('a folder in use is named, with exit status 1; wrong arguments end with 2', async () => {
    const first = dev('--relays', '1', '--data', folder.path);
    await first.lines(1);
    const second = dev('--relays', '1', '--data', folder.path);
    expect(await second.ended).toBe(1);
    expect(second.output.errors).toMatch(/^relay a: .*is in use by another relay process/);
    expect(second.output.text).toBe('');
    for (const relays of ['0', '17', 'three', '-1', '1.5']) {
      const wrong = dev(`--relays=${relays}`);
      expect(await wrong.ended).toBe(2);
      expect(wrong.output.errors).toMatch(/argument '.*' is invalid\. Expected 1 to 16\./);
    }
    const context = dev('--network', 'neo:x');
    expect(await context.ended).toBe(1);
    expect(context.output.errors).toMatch(/^relay a: network: expected a text that matches/);
  });

  test('SIGTERM while the relays start leaves nothing', async () => {
    const network = dev('--relays', '2');
    await expect
      .poll(() => readdirSync(folder.path), { interval: 1, timeout: 20_000 })
      .toHaveLength(1);
    network.child.kill('SIGTERM');
    expect(await network.ended).toBe(0);
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

test('a line of input is cut if it is too long, and memory stays bounded', async () => {
  async function* chunks() {
    for (let count = 0; count < 64; count += 1) yield 'x'.repeat(65_536);
    yield '\nclock +1\r\n';
    yield 'sto';
    yield 'p b';
  }
  const lines: string[] = [];
  for await (const line of inputLines(chunks())) lines.push(line);
  expect(lines).toEqual(['x'.repeat(1_024), 'clock +1\r', 'stop b']);
});
