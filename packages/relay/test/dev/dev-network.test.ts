import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { MethodName } from '@posthouse/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RelayContext } from '../../src/context.ts';
import { DevNetwork, type DevNetworkOptions } from '../../src/dev/dev-network.ts';
import { OffsetClock } from '../../src/dev/offset-clock.ts';
import { ManualClock } from '../support/clock.ts';
import { RelayData, rowsOf } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';
import { HttpClient } from '../support/http.ts';

let open: AsyncDisposableStack;
let folder: string;
beforeEach(() => {
  open = new AsyncDisposableStack();
  folder = open.use(temporaryFolder()).path;
});
afterEach(() => open.disposeAsync());

/** Starts a network whose relays have databases of the run's engine. */
async function start(options: Partial<DevNetworkOptions> = {}): Promise<DevNetwork> {
  const { relays = 3 } = options;
  const data = new Map<string, RelayData>();
  for (const name of ['a', 'b', 'c', 'd'].slice(0, relays)) {
    data.set(name, open.use(await RelayData.withSchema()));
  }
  const log = pino({ level: 'silent' });
  const config = (name: string) => (data.get(name) as RelayData).config;
  return open.use(await DevNetwork.start({ folder, log, config, ...options }));
}

async function call(
  network: DevNetwork,
  name: string,
  method: MethodName,
  params: object,
): Promise<Record<string, unknown>> {
  const ca = readFileSync(network.authorityFile, 'utf8');
  using client = new HttpClient(network.relay(name).server.https[0] as string, ca);
  return JSON.parse((await client.call(method, params)).text);
}

const infoOf = (network: DevNetwork, name: string) => call(network, name, 'relay.info', {});

const registryOf = (network: DevNetwork) =>
  JSON.parse(readFileSync(network.registryFile, 'utf8')) as {
    context: string;
    relays: { relay_id: string; endpoint: string; status: string }[];
  };

describe('a network', () => {
  test('three relays answer under one authority, and one registry lists them', async () => {
    const network = await start();
    expect(network.relays.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    const ids = network.relays.map(({ server }) => server.relayId);
    expect(new Set(ids).size).toBe(3);
    for (const { name, server } of network.relays) {
      const info = await infoOf(network, name);
      expect(info).toMatchObject({ relay_id: server.relayId, name: `Relay ${name}` });
    }
    const endpoints = network.relays.map(({ server }) => server.https[0] as string);
    expect(new Set(endpoints).size).toBe(3);
    const { relays } = registryOf(network);
    expect(
      relays.map(({ relay_id, endpoint, status }) => [relay_id, endpoint, status]).sort(),
    ).toEqual(ids.map((id, index) => [id, endpoints[index], 'active']).sort());
    for (const { server } of network.relays) {
      expect(await server.context.registryStatus.isActive()).toBe(true);
    }
  });

  test('07 §B5: all relays connect with each other, also after one was restarted', async () => {
    const network = await start();
    const connectedOf = (name: string) =>
      network.relay(name).server.context.metrics.value('peers', { state: 'connected' });
    const connected = () => network.relays.map(({ name }) => connectedOf(name));
    await expect.poll(connected, { timeout: 30_000 }).toEqual([2, 2, 2]);
    const b = network.relay('b');
    await b.stop();
    const others = () => ['a', 'c'].map(connectedOf);
    await expect.poll(others, { timeout: 30_000 }).toEqual([1, 1]);
    await b.start();
    await expect.poll(connected, { timeout: 30_000 }).toEqual([2, 2, 2]);
  });

  test('the relays share no part: keys, database, metrics, clock', async () => {
    const network = await start({ relays: 2, clock: () => new ManualClock() });
    const [a, b] = network.relays.map(({ server }) => server.context);
    for (const part of ['storage', 'clock', 'metrics', 'bus', 'sessions', 'jobs', 'log'] as const) {
      expect(a?.[part]).not.toBe(b?.[part]);
    }
    expect(a?.identity.peerId).not.toBe(b?.identity.peerId);
    await infoOf(network, 'a');
    const answered = { method: 'relay.info', transport: 'http', code: 'ok' };
    expect(a?.metrics.value('calls', answered)).toBe(1);
    expect(b?.metrics.value('calls', answered)).toBe(0);
  });

  test('three networks of three service words run in one process', async () => {
    const words = ['svc', 'post', 'mail'];
    const networks: DevNetwork[] = [];
    for (const service of words) {
      networks.push(await start({ folder: join(folder, service), service, relays: 2 }));
    }
    for (const [index, network] of networks.entries()) {
      const word = words[index] as string;
      for (const { name, server } of network.relays) {
        expect(new URL(server.https[0] as string).pathname).toBe(`/${word}/v1`);
        expect(await infoOf(network, name)).toMatchObject({ relay_id: server.relayId });
      }
      expect(registryOf(network).relays).toHaveLength(2);
    }
    expect(
      new Set(networks.map(({ authorityFile }) => readFileSync(authorityFile, 'utf8'))).size,
    ).toBe(3);
  });

  test('each relay logs under its name', async () => {
    const lines: string[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    await start({ relays: 2, log });
    const names = lines.map((line) => JSON.parse(line) as { name: string; msg: string });
    for (const name of ['a', 'b']) {
      expect(names).toContainEqual(expect.objectContaining({ name, msg: 'relay started' }));
    }
  });

  test('a wrong number of relays, and an unknown name, are refused', async () => {
    for (const relays of [0, 17, 1.5]) {
      await expect(DevNetwork.start({ folder, relays })).rejects.toThrow(
        `relays: expected 1 to 16, found ${relays}`,
      );
    }
    const network = await start({ relays: 1 });
    expect(() => network.relay('b')).toThrow('there is no relay b: the relays are a');
  });

  test('if one relay does not start, none is left running', async () => {
    const config = (name: string) => (name === 'b' ? { descriptorLifetime: 1 } : {});
    await expect(
      DevNetwork.start({ folder, config, log: pino({ level: 'silent' }) }),
    ).rejects.toThrow(/^relay b: descriptorLifetime: expected an integer from 60/);
    // The folders are free again.
    await using network = await DevNetwork.start({ folder, log: pino({ level: 'silent' }) });
    expect(network.relays).toHaveLength(3);
  });
});

describe('one relay of a network', () => {
  test('stops and starts again with the same keys, data and port', async () => {
    const network = await start({ relays: 2 });
    const b = network.relay('b');
    const [relayId, https, peerPort] = [b.server.relayId, b.server.https[0], b.server.peerPort];
    expect(peerPort).toBeGreaterThan(0);
    await b.stop();
    await b.stop();
    expect(b.isRunning).toBe(false);
    expect(() => b.server).toThrow('relay b is stopped: start it first');
    expect(await infoOf(network, 'a')).toHaveProperty('relay_id');
    await Promise.all([b.start(), b.start()]);
    expect([b.server.relayId, b.server.https[0]]).toEqual([relayId, https]);
    expect(b.server.peerPort).toBe(peerPort);
    await b.restart();
    expect(await infoOf(network, 'b')).toMatchObject({ relay_id: relayId });
    expect(b.server.https[0]).toBe(https);
  });

  test('a network that starts again on its folder has the same relays at the same addresses', async () => {
    const facts = (network: DevNetwork) =>
      network.relays.map(({ server }) => [server.relayId, server.https[0], server.peerPort]);
    const log = pino({ level: 'silent' });
    const first = await DevNetwork.start({ folder, relays: 2, log });
    const before = facts(first);
    await first[Symbol.asyncDispose]();
    await using second = await DevNetwork.start({ folder, relays: 2, log });
    expect(facts(second)).toEqual(before);
    expect(registryOf(second).relays).toHaveLength(2);
  });

  test('a port that another process took meanwhile is named, with what to do', async () => {
    const network = await start({ relays: 1 });
    const a = network.relay('a');
    const port = Number(new URL(a.server.https[0] as string).port);
    await a.stop();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    await expect(a.start()).rejects.toThrow(
      /^relay a: .*another process listens there.*; stop the process that uses the port, or remove .*ports\.json$/,
    );
    await new Promise((resolve) => other.close(resolve));
    await a.start();
    expect(a.isRunning).toBe(true);
  });

  test('a broken file of ports is refused by its name', async () => {
    const network = await start({ relays: 1 });
    const a = network.relay('a');
    await a.stop();
    const path = join(a.folder, 'ports.json');
    expect(existsSync(path)).toBe(true);
    for (const text of ['{', '{"https":0}', '{"https":1,"peer":0}', '{"https":"1"}', 'null']) {
      writeFileSync(path, text);
      await expect(a.start()).rejects.toThrow(
        `${path}: expected {"https": <port>, "peer": <port>}; remove the file`,
      );
    }
  });

  test('has a clock of its own; moved, it runs the jobs whose deadlines passed by that', async () => {
    const network = await start({ relays: 2 });
    const account = 'neo:0:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';
    for (const { name } of network.relays) await call(network, name, 'auth.challenge', { account });
    const [a, b] = network.relays.map(({ server }) => server.context) as [
      RelayContext,
      RelayContext,
    ];
    const challenges = ({ storage }: RelayContext) => rowsOf(storage, 'auth_challenges');
    expect(await challenges(b)).toHaveLength(1);
    network.relay('b').moveClock(301);
    expect(b.clock.now() - a.clock.now()).toBeGreaterThanOrEqual(300);
    await expect.poll(() => challenges(b)).toHaveLength(0);
    expect(await challenges(a)).toHaveLength(1);
    network.moveClocks(-60);
    expect(network.relays.map(({ clock }) => (clock as OffsetClock).offset)).toEqual([-60, 241]);
  });
});

test('a clock with an offset can be moved by a hundred years, not more', () => {
  const clock = new OffsetClock();
  clock.advance(3_155_760_000);
  expect(clock.now()).toBeGreaterThan(4_900_000_000);
  expect(() => clock.advance(1)).toThrow(RangeError);
  expect(() => clock.advance(Number.NaN)).toThrow(RangeError);
  clock.advance(-6_311_520_000);
  expect(clock.offset).toBe(-3_155_760_000);
});
