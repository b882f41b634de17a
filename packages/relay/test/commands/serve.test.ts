import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { killAll, posthouse } from '../support/command.ts';
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
