import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { isMethodName, type MethodDefinition, methods } from '@posthouse/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aboutModule, type DescriptorSource } from '../src/about/index.ts';
import { accounts } from '../src/accounts/index.ts';
import { auth } from '../src/auth/index.ts';
import type { PartialConfig } from '../src/config/index.ts';
import { combineModules } from '../src/dispatch/module-set.ts';
import { Relay } from '../src/index.ts';
import { messages } from '../src/messages/index.ts';
import { devCertificate } from '../src/tls/dev-ca.ts';
import { ManualClock } from './support/clock.ts';
import { inUse, RelayData } from './support/engine.ts';
import { HttpClient } from './support/http.ts';
import { freePort } from './support/ports.ts';
import { ServedRelay } from './support/served-relay.ts';
import { WebSocketClient } from './support/websocket.ts';

const log = pino({ level: 'silent' });

describe('the catalogue', () => {
  const offer = combineModules([
    auth,
    accounts,
    messages,
    aboutModule({ name: 'x', descriptor: undefined as unknown as DescriptorSource, modules: [] }),
  ]);

  test('every method of the base module has a handler', () => {
    const base = Object.values<MethodDefinition>(methods).filter(
      ({ capability }) => capability === undefined,
    );
    expect(base.map(({ name }) => name).filter((name) => !(name in offer.handlers))).toEqual([]);
  });

  test('every handler has a method', () => {
    expect(Object.keys(offer.handlers).filter((name) => !isMethodName(name))).toEqual([]);
  });

  test('two handlers of one method are refused', () => {
    expect(() => combineModules([auth, auth])).toThrow('two modules handle auth.challenge');
  });
});

describe('starting', () => {
  let data: RelayData;
  beforeEach(async () => {
    data = await RelayData.empty();
  });
  afterEach(() => data[Symbol.asyncDispose]());
  const values = () => ({ dev: true, ...data.config, listen: '127.0.0.1:0' });

  test('what another relay has open is refused, and stays as it is', async () => {
    await using relay = await Relay.start(values(), { log });
    await expect(Relay.start(values(), { log })).rejects.toThrow(inUse);
    expect(relay.https).toHaveLength(1);
  });

  test('a port that is taken is refused, and the data is free again', async () => {
    await using relay = await Relay.start(values(), { log });
    const listen = new URL(relay.https[0] as string).host;
    await using other = await RelayData.empty();
    const taken = { dev: true, ...other.config, listen };
    await expect(Relay.start(taken, { log })).rejects.toThrow(
      /^listen: .*another process listens there/,
    );
    const federation = { listen: `127.0.0.1:${relay.peerPort}` };
    await expect(
      Relay.start({ ...taken, listen: '127.0.0.1:0', federation }, { log }),
    ).rejects.toThrow(/^federation\.listen: .*another process listens there/);
    await using again = await Relay.start({ ...taken, listen: '127.0.0.1:0' }, { log });
    expect(again.relayId).not.toBe(relay.relayId);
  });

  test('01 N4: a database of another network, word or relay is refused', async () => {
    await (await Relay.start(values(), { log }))[Symbol.asyncDispose]();
    const network = `neo:1:0x${'0'.repeat(40)}`;
    await expect(Relay.start({ ...values(), network }, { log })).rejects.toThrow(
      /the database belongs to network neo:0:/,
    );
    await expect(Relay.start({ ...values(), service: 'other' }, { log })).rejects.toThrow(
      'the database belongs to service svc, this relay has other',
    );
    await (await Relay.start(values(), { log }))[Symbol.asyncDispose]();
  });

  test('without keys it says how to make them', async () => {
    const peer = '/ip4/127.0.0.1/tcp/1';
    const config = { ...values(), dev: false, network: `neo:0:0x${'0'.repeat(40)}` };
    const tls = { mode: 'dev' } as const;
    await expect(Relay.start({ ...config, tls, public: { peer } }, { log })).rejects.toThrow(
      /posthouse init/,
    );
  });

  test('a signal that was aborted before starts nothing', async () => {
    await expect(
      Relay.start(values(), { log, signal: AbortSignal.abort(new Error('too late')) }),
    ).rejects.toThrow('too late');
    await (await Relay.start(values(), { log }))[Symbol.asyncDispose]();
  });

  test('behind a proxy it serves plain HTTP under its public addresses', async () => {
    await using relay = await Relay.start(
      {
        ...values(),
        tls: { mode: 'off' },
        listen: '127.0.0.1:0',
        public: { https: ['https://relay.example/svc/v1'] },
      },
      { log },
    );
    expect(relay.https).toEqual(['https://relay.example/svc/v1']);
    expect(relay.wss).toEqual(['wss://relay.example/svc/v1']);
    expect(relay.context.metrics.value('no_trusted_proxy')).toBe(1);
  });

  test('a proxy that is trusted needs no warning', async () => {
    await using relay = await Relay.start(
      {
        ...values(),
        tls: { mode: 'off' },
        public: { https: ['https://relay.example/svc/v1'] },
        trustedProxies: ['127.0.0.1'],
      },
      { log },
    );
    expect(relay.context.metrics.value('no_trusted_proxy')).toBe(0);
  });

  test('01 §0: the service word is in the path and the header, and may be another', async () => {
    await using relay = await Relay.start({ ...values(), service: 'meshline' }, { log });
    expect(relay.https[0]).toMatch(/\/meshline\/v1$/);
    const ca = readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8');
    using client = new HttpClient(relay.https[0] as string, ca);
    const headers = { 'access-control-request-method': 'GET' };
    const preflight = await client.send({ verb: 'OPTIONS', path: '/relay/info', headers });
    expect(preflight.headers['access-control-allow-headers']).toBe(
      'content-type, x-meshline-session',
    );
    const descriptor = JSON.parse((await client.call('relay.descriptor', {})).text);
    expect(descriptor.$type).toBe('meshline.relay.descriptor');
  });

  test('own certificates are taken into use when they are renewed', async () => {
    const [first, second] = [join(data.path, 'one'), join(data.path, 'two')];
    const now = Math.floor(Date.now() / 1_000);
    await devCertificate(first, ['127.0.0.1'], now);
    await devCertificate(second, ['127.0.0.1'], now);
    const tls = {
      mode: 'files',
      certificate: join(first, 'tls', 'server.pem'),
      key: join(first, 'tls', 'server.key'),
    } as const;
    const clock = new ManualClock();
    await using relay = await Relay.start({ ...values(), tls }, { log, clock });
    const trusts = async (authority: string) => {
      const ca = readFileSync(join(authority, 'tls', 'ca.pem'), 'utf8');
      using client = new HttpClient(relay.https[0] as string, ca);
      return await client.call('relay.info', {}).then(
        () => true,
        () => false,
      );
    };
    expect([await trusts(first), await trusts(second)]).toEqual([true, false]);
    for (const file of ['server.pem', 'server.key']) {
      copyFileSync(join(second, 'tls', file), join(first, 'tls', file));
    }
    clock.advance(60);
    while (!(await trusts(second))) await new Promise((resolve) => setImmediate(resolve));
    // Files that are wrong for now change nothing.
    writeFileSync(tls.certificate, 'half a certificate');
    clock.advance(60);
    const failed = () => relay.context.metrics.value('certificate_reloads_failed');
    while (failed() === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await trusts(second)).toBe(true);
  });

  test('certificate files that are none are named with the setting they stand in', async () => {
    const certificate = join(data.path, 'own.pem');
    const key = join(data.path, 'own.key');
    const start = () =>
      Relay.start({ ...values(), tls: { mode: 'files', certificate, key } }, { log });
    await expect(start()).rejects.toThrow(`${key}: cannot be read, tls.key names it`);
    const hosts = ['127.0.0.1'];
    const now = Math.floor(Date.now() / 1_000);
    const right = await devCertificate(join(data.path, 'a'), hosts, now);
    const other = await devCertificate(join(data.path, 'b'), hosts, now);
    writeFileSync(key, 'no key', { mode: 0o600 });
    await expect(start()).rejects.toThrow(`${certificate}: cannot be read, tls.certificate names`);
    writeFileSync(certificate, 'no certificate');
    await expect(start()).rejects.toThrow(`${certificate}: expected a PEM certificate chain`);
    writeFileSync(certificate, right.cert);
    await expect(start()).rejects.toThrow(`${key}: expected a PEM private key`);
    writeFileSync(key, other.key);
    await expect(start()).rejects.toThrow(`${key}: is not the key of ${certificate}`);
    writeFileSync(key, right.key);
    await (await start())[Symbol.asyncDispose]();
  });

  test('a registry without this relay or with another address is a warning, a wrong one is refused', async () => {
    // A port that no other program is given while the relay is away.
    const listen = `127.0.0.1:${await freePort()}`;
    await (await Relay.start({ ...values(), listen }, { log }))[Symbol.asyncDispose]();
    const registry = join(data.path, 'registry.json');
    const configured = {
      ...values(),
      dev: false,
      network: `neo:0:0x${'0'.repeat(40)}`,
      tls: { mode: 'dev' },
      public: { peer: '/ip4/127.0.0.1/tcp/1' },
      federation: { listen: '127.0.0.1:0' },
      registry,
    } as const;
    const warnings = async (settings: PartialConfig = configured) => {
      await using relay = await Relay.start(settings, { log });
      const { metrics } = relay.context;
      return [metrics.value('not_registered'), metrics.value('other_endpoint_registered')];
    };
    const named = readFileSync(registry, 'utf8');
    expect(await warnings({ ...configured, listen })).toEqual([0, 0]);
    expect(await warnings()).toEqual([0, 1]);
    writeFileSync(registry, named.replace('active', 'suspended'));
    expect(await warnings()).toEqual([1, 0]);
    writeFileSync(registry, named.replace(/neo:0/, 'neo:1'));
    await expect(Relay.start(configured, { log })).rejects.toThrow(
      `${registry}: context: is of another network`,
    );
    rmSync(registry);
    await expect(Relay.start(configured, { log })).rejects.toThrow(
      /registry\.json: does not exist/,
    );
  });

  test('a development relay enters itself into its registry file, once', async () => {
    for (let round = 0; round < 2; round += 1) {
      await using relay = await Relay.start(values(), { log });
      const path = join(data.path, 'registry.json');
      const registry = JSON.parse(readFileSync(path, 'utf8'));
      // Another account of the machine that could write it could name itself a relay.
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(registry).toEqual({
        context: relay.network.context,
        relays: [
          {
            relay_id: relay.relayId,
            endpoint: relay.https[0],
            status: 'active',
            updated_at: expect.any(Number),
          },
        ],
      });
    }
  });
});

describe('stopping', () => {
  let relay: ServedRelay;
  beforeEach(async () => {
    relay = await ServedRelay.start({ limits: { stopGrace: 5_000, requestTimeout: 600_000 } });
  });
  afterEach(() => relay[Symbol.asyncDispose]());
  const account = 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';

  /** Keeps writes waiting until they are let go; says when so many wait. */
  function hold(count: number): { waiting: Promise<void>; release: () => void } {
    const { promise, resolve: release } = Promise.withResolvers<void>();
    const { promise: waiting, resolve: arrived } = Promise.withResolvers<void>();
    const { storage } = relay.server.context;
    const write = storage.write.bind(storage);
    let expected = count;
    storage.write = async (aggregates, work) => {
      // Jobs write too.
      if (String(aggregates).startsWith('challenge:')) expected -= 1;
      if (expected === 0) arrived();
      await promise;
      return write(aggregates, work);
    };
    return { waiting, release };
  }

  test('answers requests in progress on both transports, then closes with 1001', async () => {
    const socket = await relay.socket();
    const { waiting, release } = hold(2);
    const overHttp = relay.http().call('auth.challenge', { account });
    const overSocket = socket.call('auth.challenge', { account });
    await waiting;
    const stopped = relay.server[Symbol.asyncDispose]();
    release();
    const answer = await overHttp;
    expect(answer.status).toBe(200);
    // Otherwise the connection would stay open, idle, for as long as it is allowed to.
    expect(answer.headers.connection).toBe('close');
    expect(await overSocket).toHaveProperty('result.nonce');
    expect(await socket.closed).toBe(1001);
    await stopped;
    await relay.server.closed;
  });

  test('takes no new connection and no new request', async () => {
    const socket = await relay.socket();
    const url = relay.server.wss[0] as string;
    const { waiting, release } = hold(1);
    const held = socket.call('auth.challenge', { account });
    await waiting;
    const stopped = relay.server[Symbol.asyncDispose]();
    await expect(WebSocketClient.open(url, relay.ca)).rejects.toThrow();
    await expect(relay.http().call('relay.info', {})).rejects.toThrow();
    socket.socket.send('{"jsonrpc":"2.0","id":"late","method":"relay.info"}');
    // The pong says that the request before it was read.
    socket.socket.ping();
    await new Promise((resolve) => socket.socket.once('pong', resolve));
    release();
    await held;
    await stopped;
    await expect(socket.answer('late')).rejects.toThrow('the connection is closed');
  });

  test('a WebSocket with a request under way after the grace ends because the relay stops', async () => {
    const socket = await relay.socket();
    const { metrics } = relay.server.context;
    const ended = (reason: string) => metrics.value('connections_ended', { reason });
    const { waiting, release } = hold(1);
    socket.call('auth.challenge', { account }).catch(() => {});
    await waiting;
    const stopped = relay.server[Symbol.asyncDispose]();
    await new Promise((resolve) => setImmediate(resolve));
    relay.clock.advance(5);
    expect(await socket.closed).toBe(1006);
    release();
    await stopped;
    expect([ended('relay stops'), ended('too many connections')]).toEqual([1, 0]);
  });

  test('does not wait for ever for a peer that does not say goodbye', async () => {
    const socket = await relay.socket();
    socket.socket.pause();
    const stopped = relay.server[Symbol.asyncDispose]();
    await new Promise((resolve) => setImmediate(resolve));
    relay.clock.advance(5);
    await stopped;
    socket.socket.resume();
  });

  test('does not wait for a refused upgrade whose peer keeps its half open', async () => {
    const socket = await openTls(relay);
    socket.resume();
    socket.write(
      'GET /none HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    );
    await new Promise((resolve) => socket.once('end', resolve));
    await relay.server[Symbol.asyncDispose]();
    socket.destroy();
  });

  test('waits for a handshake that never ends no longer than for anything else', async () => {
    const { hostname, port } = new URL(relay.server.https[0] as string);
    const socket = connectTcp(Number(port), hostname);
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('connect', resolve));
    // Later in the queue of connections: once this is answered, the relay has the other too.
    await relay.http().call('relay.info', {});
    const stopped = relay.server[Symbol.asyncDispose]();
    await new Promise((resolve) => setImmediate(resolve));
    relay.clock.advance(5);
    await stopped;
    socket.destroy();
  });

  /** A connection that does not say goodbye because the relay does. */
  async function openTls(of: ServedRelay) {
    const { hostname, port } = new URL(of.server.https[0] as string);
    const tcp = connectTcp({ host: hostname, port: Number(port), allowHalfOpen: true });
    const socket = connectTls({ socket: tcp, ca: of.ca, host: hostname });
    socket.on('error', () => {});
    await new Promise((resolve) => socket.once('secureConnect', resolve));
    return socket;
  }

  test('aborting the signal stops it', async () => {
    await using data = await RelayData.empty();
    const stopping = new AbortController();
    const relay = await Relay.start(
      { dev: true, ...data.config, listen: '127.0.0.1:0' },
      { log, signal: stopping.signal },
    );
    stopping.abort();
    await relay.closed;
    await expect(relay.context.storage.read(async () => 1)).rejects.toThrow('storage is closed');
  });

  test('stopping twice is stopping once', async () => {
    await Promise.all([relay.server[Symbol.asyncDispose](), relay.server[Symbol.asyncDispose]()]);
    await relay.server[Symbol.asyncDispose]();
  });
});
