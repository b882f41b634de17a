import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkDescriptor, Network, noblePrimitives, parseJson } from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from './support/folder.ts';
import { HttpClient } from './support/http.ts';
import { WebSocketClient } from './support/websocket.ts';

let folder: ReturnType<typeof temporaryFolder>;
const running = new Set<ChildProcess>();

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  folder[Symbol.dispose]();
});

const main = new URL('../src/main.ts', import.meta.url).pathname;

/** The command with its output so far; `ended` gives the exit code or the signal. */
function posthouse(
  args: readonly string[],
  environment: Record<string, string> = {},
  standardError: 'pipe' | number = 'pipe',
) {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', standardError],
  });
  running.add(child);
  const output = { text: '', errors: '' };
  const lineWaiters: (() => void)[] = [];
  child.stdout?.on('data', (data) => {
    output.text += data;
    if (output.text.includes('\n')) for (const wake of lineWaiters.splice(0)) wake();
  });
  child.stderr?.on('data', (data) => {
    output.errors += data;
  });
  const ended = new Promise<number | string | null>((resolve) => {
    child.on('close', (code, signal) => {
      running.delete(child);
      for (const wake of lineWaiters.splice(0)) wake();
      resolve(code ?? signal);
    });
  });
  const line = async () => {
    if (!output.text.includes('\n')) await new Promise<void>((wake) => lineWaiters.push(wake));
    return output.text.split('\n', 1)[0] ?? '';
  };
  return { child, output, ended, line };
}

const serve = (...more: string[]) =>
  posthouse(['serve', '--dev', '--data', folder.path, '--listen', '127.0.0.1:0', ...more]);

describe('posthouse serve', () => {
  test('prints one ready line, answers, and ends by itself with 0 on SIGTERM', async () => {
    const relay = serve();
    const [ready, https, wss, relayId, context] = (await relay.line()).split(' ');
    expect(ready).toBe('ready');
    expect(relayId).toMatch(/^0x[0-9a-f]{40}$/);
    expect(context).toBe(`neo:0:0x${'0'.repeat(40)}`);
    const ca = readFileSync(join(folder.path, 'tls', 'ca.pem'), 'utf8');
    using client = new HttpClient(https as string, ca);
    const info = await client.call('relay.info', {});
    expect(JSON.parse(info.text)).toMatchObject({ relay_id: relayId });
    const socket = await WebSocketClient.open(wss as string, ca);
    expect(await socket.call('relay.info')).toHaveProperty('result.relay_id', relayId);
    relay.child.kill('SIGTERM');
    expect(await socket.closed).toBe(1001);
    expect(await relay.ended).toBe(0);
    expect(relay.output.text.split('\n')).toHaveLength(2);
    // Closed in order, SQLite leaves no journal behind.
    expect(existsSync(join(folder.path, 'relay.sqlite-wal'))).toBe(false);
  });

  test('after SIGKILL it starts again as the same relay', async () => {
    const first = serve();
    const before = (await first.line()).split(' ')[3];
    first.child.kill('SIGKILL');
    expect(await first.ended).toBe('SIGKILL');
    const second = serve();
    expect((await second.line()).split(' ')[3]).toBe(before);
    second.child.kill('SIGINT');
    expect(await second.ended).toBe(0);
  });

  test('a folder in use is said to be, with exit code 1', async () => {
    const first = serve();
    await first.line();
    const second = serve();
    expect(await second.ended).toBe(1);
    expect(second.output.errors).toBe(`${folder.path} is in use by another relay process\n`);
    expect(second.output.text).toBe('');
  });

  test('a standard error that takes nothing, as on a full disk, ends no relay', async () => {
    const unwritable = openSync('/dev/null', 'r');
    const arguments_ = ['serve', '--dev', '--data', folder.path, '--listen', '127.0.0.1:0'];
    const relay = posthouse([...arguments_, '--log', 'debug'], {}, unwritable);
    const [, https] = (await relay.line()).split(' ');
    using client = new HttpClient(
      https as string,
      readFileSync(join(folder.path, 'tls', 'ca.pem'), 'utf8'),
    );
    for (let call = 0; call < 3; call += 1) {
      expect((await client.call('relay.info', {})).status).toBe(200);
    }
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    closeSync(unwritable);
  });

  test('a wrong configuration is told in full, with exit code 2', async () => {
    const relay = posthouse(['serve', '--dev', '--listen', 'nowhere'], {
      POSTHOUSE_LIMITS_PAGE_SIZE: '0',
    });
    expect(await relay.ended).toBe(2);
    expect(relay.output.errors.split('\n')).toEqual([
      'the configuration is wrong:',
      expect.stringMatching(/^listen: expected .*found "nowhere" \(command line\)$/),
      'limits.pageSize: expected an integer from 1, found 0 ' +
        '(environment POSTHOUSE_LIMITS_PAGE_SIZE)',
      '',
    ]);
  });
});

describe('posthouse init, descriptor, config explain', () => {
  const network = `neo:860833102:0x${'12'.repeat(20)}`;
  const config = () => {
    const path = join(folder.path, 'config.json');
    writeFileSync(
      path,
      JSON.stringify({
        network,
        data: join(folder.path, 'data'),
        public: { https: ['https://relay.example/svc/v1'], peer: '/dns4/relay.example/tcp/4201' },
        tls: { mode: 'off' },
      }),
    );
    return path;
  };

  test('init needs no more than a folder and a network', async () => {
    const made = posthouse(['init', '--data', join(folder.path, 'new'), '--network', network]);
    expect(await made.ended).toBe(0);
    expect(made.output.text).toContain('relay id 0x');
  });

  test('init makes keys once; descriptor signs with them', async () => {
    const file = config();
    const first = posthouse(['init', '--config', file]);
    expect(await first.ended).toBe(0);
    expect(first.output.text).toMatch(
      /^keys made: .*\nrelay id 0x[0-9a-f]{40}\npublic key .{44}\npeer id 12D3Koo.*\n$/,
    );
    const second = posthouse(['init', '--config', file]);
    await second.ended;
    expect(second.output.text).toBe(first.output.text.replace('made', 'there already'));
    const descriptor = posthouse(['descriptor'], { POSTHOUSE_CONFIG: file });
    expect(await descriptor.ended).toBe(0);
    const value = parseJson(descriptor.output.text);
    checkDescriptor(new Network({ context: network, primitives: noblePrimitives }), value);
    expect(value.endpoints.slice(0, 2)).toEqual([
      'https://relay.example/svc/v1',
      'wss://relay.example/svc/v1',
    ]);
    expect(first.output.text).toContain(value.relay_id);
  });

  test('config explain prints the value and source of every key', async () => {
    const explained = posthouse(['config', 'explain', '--config', config(), '--log', 'warn']);
    expect(await explained.ended).toBe(0);
    expect(explained.output.text).toContain('log = "warn"  (command line)');
    expect(explained.output.text).toContain(`network = "${network}"  (file `);
  });

  test('an unknown command or option fails', async () => {
    expect(await posthouse(['nonsense']).ended).toBe(1);
    expect(await posthouse(['serve', '--nonsense']).ended).toBe(1);
  });
});
