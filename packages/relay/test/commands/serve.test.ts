import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, getPriority } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { posthouseCommand } from '../support/bundled-command.ts';
import { bareEnvironment, killAll, posthouse } from '../support/command.ts';
import { inUse, RelayData } from '../support/engine.ts';
import { HttpClient } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { WebSocketClient } from '../support/websocket.ts';

let data: RelayData;
beforeEach(async () => {
  data = await RelayData.empty();
});
afterEach(async () => {
  killAll();
  await data[Symbol.asyncDispose]();
});

function serve(more: readonly string[] = [], standardError: 'pipe' | number = 'pipe') {
  const options = ['--dev', '--data', data.path, '--listen', '127.0.0.1:0', ...more];
  return posthouse(['serve', ...options], data.environment, { standardError });
}

/** Priorities of a process's threads whose name has a text in it; a higher one is nicer. */
function priorities(pid: number, name: string): number[] {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder)
    .filter((thread) => readFileSync(join(folder, thread, 'comm'), 'utf8').includes(name))
    .map((thread) => getPriority(Number(thread)));
}

describe('posthouse serve', () => {
  test('prints one ready line, answers, and ends by itself with 0 on SIGTERM', async () => {
    const relay = serve();
    const [ready, https, wss, relayId, context] = (await relay.line()).split(' ');
    expect(ready).toBe('ready');
    expect(relayId).toMatch(/^0x[0-9a-f]{40}$/);
    expect(context).toBe(`neo:0:0x${'0'.repeat(40)}`);
    const ca = readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8');
    using client = new HttpClient(https as string, ca);
    const info = await client.call('relay.info', {});
    expect(JSON.parse(info.text)).toMatchObject({ relay_id: relayId });
    const socket = await WebSocketClient.open(wss as string, ca);
    expect(await socket.call('relay.info')).toHaveProperty('result.relay_id', relayId);
    relay.child.kill('SIGTERM');
    expect(await socket.closed).toBe(1001);
    expect(await relay.ended).toBe(0);
    expect(relay.output.text.split('\n')).toHaveLength(2);
    // After an orderly close SQLite has no journal; PostgreSQL never has one here.
    expect(existsSync(join(data.path, 'relay.sqlite-wal'))).toBe(false);
  });

  test('a second SIGTERM or SIGINT cuts no request off that the first one lets end', async () => {
    const relay = serve();
    const { port, pathname } = new URL((await relay.line()).split(' ')[1] as string);
    const open = () => connect({ port: Number(port), rejectUnauthorized: false });
    const socket = open();
    await once(socket, 'secureConnect');
    const head = `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n`;
    socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{`);
    // The relay has the beginning of the request before it answers another connection.
    const other = open();
    other.write(`GET ${pathname}/relay/info HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    await once(other, 'data');
    relay.child.kill('SIGTERM');
    await once(other, 'close');
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGINT'] as const) relay.child.kill(signal);
    socket.write('}');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
    expect(await relay.ended).toBe(0);
  });

  test.runIf(availableParallelism() > 1)(
    "0047: on one core V8's threads leave it to the event loop, with more they do not",
    async () => {
      for (const [cores, nicer] of [
        ['0', 10],
        ['0,1', 0],
      ] as const) {
        const options = ['--dev', '--data', data.path, '--listen', '127.0.0.1:0'];
        const program = [process.execPath, posthouseCommand, 'serve', ...options];
        const env = { ...bareEnvironment(), ...data.environment };
        const relay = spawn('taskset', ['-c', cores, ...program], { env });
        onTestFinished(() => void relay.kill('SIGKILL'));
        await once(relay.stdout, 'data');
        const pid = relay.pid as number;
        const [eventLoop = Number.NaN] = priorities(pid, 'MainThread');
        const expected = new Set([Math.min(19, eventLoop + nicer)]);
        expect(new Set(priorities(pid, 'V8Worker'))).toEqual(expected);
        // What stores and verifies has the priority of the event loop.
        expect(new Set(priorities(pid, 'libuv'))).toEqual(new Set([eventLoop]));
        const ended = once(relay, 'exit');
        relay.kill('SIGTERM');
        await ended;
      }
    },
  );

  test('SIGHUP takes a changed configuration over; a broken one leaves the relay as it is', async () => {
    const config = join(data.path, 'relay.json');
    const write = (value: object | string) =>
      writeFileSync(config, typeof value === 'string' ? value : JSON.stringify(value));
    write({ name: 'One' });
    const relay = serve(['--config', config]);
    const [, https = ''] = (await relay.line()).split(' ');
    const logged = async (text: string) => {
      relay.child.kill('SIGHUP');
      await vi.waitFor(() => expect(relay.output.errors).toContain(text), patience);
    };
    write({ name: 'Two', limits: { accountsPerAddress: 3 } });
    await logged('"applied":["limits.accountsPerAddress"],"needRestart":["name"]');
    write('{ "limits": ');
    await logged('is not JSON');
    write({ limits: { accountsPerAddress: 'many' } });
    await logged('limits.accountsPerAddress: expected an integer from 1');
    using client = new HttpClient(https, readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8'));
    expect((await client.call('relay.info', {})).status).toBe(200);
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
  });

  test('SIGUSR1 opens no debugger, in which every user of the machine could read the keys', async () => {
    const relay = serve();
    await relay.line();
    relay.child.kill('SIGUSR1');
    relay.child.kill('SIGHUP');
    const reloaded = () => expect(relay.output.errors).toContain('configuration reloaded');
    await vi.waitFor(reloaded, patience);
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    expect(relay.output.errors).not.toMatch(/debugger|inspector/i);
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

  test('data in use is said to be, with exit code 1', async () => {
    const first = serve();
    await first.line();
    const second = serve();
    expect(await second.ended).toBe(1);
    expect(second.output.errors.trimEnd()).toMatch(inUse);
    expect(second.output.errors.split('\n')).toHaveLength(2);
    expect(second.output.text).toBe('');
  });

  test('a standard error that takes nothing, as on a full disk, ends no relay', async () => {
    const unwritable = openSync('/dev/null', 'r');
    const relay = serve(['--log', 'debug'], unwritable);
    const [, https] = (await relay.line()).split(' ');
    using client = new HttpClient(
      https as string,
      readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8'),
    );
    for (let call = 0; call < 3; call += 1) {
      expect((await client.call('relay.info', {})).status).toBe(200);
    }
    relay.child.kill('SIGTERM');
    expect(await relay.ended).toBe(0);
    closeSync(unwritable);
  });
});
