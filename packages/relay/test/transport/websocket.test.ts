import { connect } from 'node:tls';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Hub } from '../../src/notifications/hub.ts';
import type { Person } from '../fixtures/person.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';
import { type WebSocketClient as Client, WebSocketClient } from '../support/websocket.ts';

const relay = servedRelay({ host: { channels: false } });
let socket: Client;

beforeEach(async () => {
  socket = await relay.socket();
});

const parseError = -32700;
const invalidRequest = -32600;
const methodNotFound = -32601;
const invalidParams = -32602;

describe('02 §3.4: requests', () => {
  test.each([7, -1, 0, 2 ** 53 - 1, 'a', '', 'x'.repeat(128), '\u00e4'.repeat(64)])(
    'the id %j comes back unchanged',
    async (id) => {
      const answer = await socket.send(
        JSON.stringify({ jsonrpc: '2.0', id, method: 'relay.info' }),
      );
      expect(answer).toMatchObject({ jsonrpc: '2.0', id, result: { relay_id: relay.relayId } });
      expect(answer).not.toHaveProperty('error');
    },
  );

  test.each([
    ['null', 'null'],
    ['a boolean', 'true'],
    ['an array', '[1]'],
    ['an object', '{}'],
    ['129 bytes', `"${'x'.repeat(129)}"`],
    ['129 bytes in fewer characters', `"x${'ä'.repeat(64)}"`],
  ])('an id that is %s is Invalid Request and not echoed', async (_, id) => {
    const answer = await socket.send(`{"jsonrpc":"2.0","id":${id},"method":"relay.info"}`);
    expect(answer).toMatchObject({ id: null, error: { code: invalidRequest } });
    expect(answer).not.toHaveProperty('result');
  });

  test.each<[string, string, number | null]>([
    ['without an id', '{"jsonrpc":"2.0","method":"relay.info"}', null],
    ['without jsonrpc', '{"id":1,"method":"relay.info"}', 1],
    ['of another version', '{"jsonrpc":"1.0","id":1,"method":"relay.info"}', 1],
    ['with jsonrpc as a number', '{"jsonrpc":2.0,"id":1,"method":"relay.info"}', 1],
    ['without a method', '{"jsonrpc":"2.0","id":1}', 1],
    ['with a method that is no text', '{"jsonrpc":"2.0","id":1,"method":7}', 1],
    ['in an array', '[{"jsonrpc":"2.0","id":1,"method":"relay.info"}]', null],
    ['that is a text', '"relay.info"', null],
    ['that is null', 'null', null],
  ])('a message %s is Invalid Request', async (_, text, id) => {
    expect(await socket.send(text)).toMatchObject({ id, error: { code: invalidRequest } });
  });

  test.each(['null', '[]', '"x"', '7', 'true'])(
    '§2.5: params %s are Invalid Params, never an omission',
    async (params) => {
      const text = `{"jsonrpc":"2.0","id":1,"method":"relay.info","params":${params}}`;
      expect(await socket.send(text)).toMatchObject({ id: 1, error: { code: invalidParams } });
    },
  );

  test.each(['', ',"params":{}', ',"params":{"unknown":[1]}'])(
    '§2.5: a method without parameters takes "%s"',
    async (params) => {
      const text = `{"jsonrpc":"2.0","id":1,"method":"relay.info"${params}}`;
      expect(await socket.send(text)).toMatchObject({ id: 1, result: { name: 'Posthouse' } });
    },
  );

  test('§3.8: unknown members of the envelope change nothing', async () => {
    const text =
      '{"jsonrpc":"2.0","id":1,"method":"relay.info","s":"x","result":1,"error":0,"$x":null}';
    expect(await socket.send(text)).toMatchObject({ id: 1, result: { name: 'Posthouse' } });
  });

  test.each(['relay.INFO', 'relay/info', 'device.status', 'channel.read', 'constructor', ''])(
    'the method %j is Method Not Found',
    async (method) => {
      expect(await socket.call(method)).toMatchObject({ error: { code: methodNotFound } });
    },
  );

  test('answers come in any order, each under its id', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `request ${index}`);
    for (const id of ids) {
      socket.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'relay.info' }));
    }
    const answers = await Promise.all(ids.map((id) => socket.answer(id)));
    expect(answers.map(({ id }) => id)).toEqual(ids);
  });
});

describe('02 §4.2, §18: texts that are refused', () => {
  test.each<[string, string, number, number | null]>([
    ['is cut off', '{"jsonrpc":"2.0","id":1', parseError, null],
    ['is empty', '', parseError, null],
    [
      'has trailing characters',
      '{"jsonrpc":"2.0","id":1,"method":"relay.info"} x',
      parseError,
      null,
    ],
    ['begins with a byte order mark', '\ufeff{}', parseError, null],
    [
      'repeats a member',
      '{"jsonrpc":"2.0","id":1,"method":"relay.info","a":1,"a":2}',
      invalidRequest,
      1,
    ],
    [
      'repeats its id',
      '{"jsonrpc":"2.0","id":1,"id":1,"method":"relay.info"}',
      invalidRequest,
      null,
    ],
    [
      'repeats a parameter',
      '{"jsonrpc":"2.0","id":1,"method":"relay.info","params":{"a":1,"a":2}}',
      invalidParams,
      1,
    ],
    [
      'has a fraction in params',
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.5}}',
      invalidParams,
      1,
    ],
    [
      'has minus zero in params',
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":-0}}',
      invalidParams,
      1,
    ],
    ['has a fraction outside', '{"jsonrpc":"2.0","id":1,"method":"m","a":1.5}', invalidRequest, 1],
    [
      'has a lone surrogate in params',
      '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\ud800"}}',
      invalidParams,
      1,
    ],
    [
      'is too deep in params',
      `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(16)}${']'.repeat(16)}}}`,
      invalidParams,
      1,
    ],
  ])('one that %s', async (_, text, code, id) => {
    expect(await socket.send(text)).toMatchObject({ id, error: { code } });
    expect(await socket.call('relay.info')).toHaveProperty('result');
  });

  test('bytes that are no UTF-8 are a Parse Error; the connection stays', async () => {
    socket.socket.send(Buffer.from([0x22, 0xff, 0x22]), { binary: false });
    expect(await socket.answer(null)).toMatchObject({ error: { code: parseError } });
    expect(await socket.call('relay.info')).toHaveProperty('result');
  });

  test('the depth limit itself passes', async () => {
    const deep = `{"a":${'['.repeat(15)}${']'.repeat(15)}}`;
    const text = `{"jsonrpc":"2.0","id":1,"method":"relay.info","params":${deep}}`;
    expect(await socket.send(text)).toHaveProperty('result');
  });
});

describe('02 §3.3: frames', () => {
  test('a binary message closes with 1003', async () => {
    socket.socket.send(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"relay.info"}'));
    expect(await socket.closed).toBe(1003);
  });

  const request = (bytes: number) => {
    const head = '{"jsonrpc":"2.0","id":1,"method":"relay.info","padding":"';
    return `${head}${'x'.repeat(bytes - head.length - 2)}"}`;
  };

  test('a message of exactly 1 MiB is answered', async () => {
    expect(await socket.send(request(1_048_576))).toHaveProperty('result');
  });

  test('one byte more closes with 1009 and gets no answer', async () => {
    socket.socket.send(request(1_048_577));
    expect(await socket.closed).toBe(1009);
    await expect(socket.answer(1)).rejects.toThrow('the connection is closed');
  });

  test('a message in many fragments is one message, and counts as one', async () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"relay.info"}';
    for (const [index, character] of [...text].entries()) {
      socket.socket.send(character, { fin: index === text.length - 1 });
    }
    expect(await socket.answer(1)).toHaveProperty('result');
    socket.socket.send('x'.repeat(600_000), { fin: false });
    socket.socket.send('x'.repeat(600_000), { fin: true });
    expect(await socket.closed).toBe(1009);
  });

  test('DECISION: no extension is taken, compression is not', async () => {
    const offer = { 'sec-websocket-extensions': 'permessage-deflate; client_max_window_bits' };
    using offering = await WebSocketClient.open(relay.server.wss[0] as string, relay.ca, offer);
    expect(offering.socket.extensions).toBe('');
    expect(await offering.call('relay.info')).toHaveProperty('result');
  });

  test('one connection that breaks the rules leaves the others alone', async () => {
    const other = await relay.socket();
    socket.socket.send(Buffer.from('x'));
    await socket.closed;
    expect(await other.call('relay.info')).toHaveProperty('result');
  });
});

describe('02 §18: requests in progress', () => {
  /** Keeps every write waiting until it is let go. */
  function holdStorage(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { storage } = relay.server.context;
    const write = storage.write.bind(storage);
    storage.write = async (aggregates, work) => {
      await promise;
      return write(aggregates, work);
    };
    return () => {
      storage.write = write;
      resolve();
    };
  }
  const account = 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';
  const challenge = (id: string | number) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'auth.challenge', params: { account } });

  test('the id of a request in progress is Invalid Request; the first is answered', async () => {
    const release = holdStorage();
    socket.socket.send(challenge('a'));
    expect(await socket.send(challenge('a'))).toMatchObject({
      id: 'a',
      error: { code: invalidRequest },
    });
    release();
    expect(await socket.answer('a')).toHaveProperty('result.nonce');
    expect(await socket.send(challenge('a'))).toHaveProperty('result.nonce');
  });

  test('the text "1" and the number 1 are two ids', async () => {
    const release = holdStorage();
    socket.socket.send(challenge('1'));
    socket.socket.send(challenge(1));
    release();
    expect(await socket.answer('1')).toHaveProperty('result');
    expect(await socket.answer(1)).toHaveProperty('result');
  });

  test('more than 64 are rate_limited for a second, and answered again later', async () => {
    const release = holdStorage();
    for (let id = 0; id < 64; id += 1) socket.socket.send(challenge(id));
    const refused = await socket.send(challenge(64));
    const error = { code: -32030, data: { retry_after: 1 } };
    expect(refused).toMatchObject({ id: 64, error });
    release();
    for (let id = 0; id < 64; id += 1) expect(await socket.answer(id)).toHaveProperty('result');
    expect(await socket.send(challenge(64))).toHaveProperty('result');
  });
});

describe('peers that do not behave', () => {
  test('one that does not answer pings is ended', async () => {
    await using strict = await ServedRelay.start({ limits: { pingInterval: 30_000 } });
    const client = await WebSocketClient.open(strict.server.wss[0] as string, strict.ca);
    client.socket.removeAllListeners('ping');
    client.socket.pause();
    strict.clock.advance(30);
    strict.clock.advance(30);
    client.socket.resume();
    expect(await client.closed).toBe(1006);
    expect(endings(strict, 'peer does not answer pings')).toBe(1);
  });

  test('0019: each is pinged at its own time', async () => {
    await using strict = await ServedRelay.start({ limits: { pingInterval: 30_000 } });
    const open = async () => {
      const client = await WebSocketClient.open(strict.server.wss[0] as string, strict.ca);
      let pings = 0;
      client.socket.on('ping', () => {
        pings += 1;
      });
      // An answer follows the pings before it.
      return async () => {
        await client.call('relay.info');
        return pings;
      };
    };
    const first = await open();
    strict.clock.advance(10);
    const second = await open();
    strict.clock.advance(20);
    expect([await first(), await second()]).toEqual([1, 0]);
    strict.clock.advance(10);
    expect([await first(), await second()]).toEqual([1, 1]);
  });

  test('one that answers pings stays', async () => {
    await using strict = await ServedRelay.start({ limits: { pingInterval: 30_000 } });
    const client = await WebSocketClient.open(strict.server.wss[0] as string, strict.ca);
    for (let count = 0; count < 3; count += 1) {
      const pinged = new Promise((resolve) => client.socket.once('ping', resolve));
      strict.clock.advance(30);
      await pinged;
      // The pong is ahead of this call.
      expect(await client.call('relay.info')).toHaveProperty('result');
    }
    client.socket.terminate();
  });

  test('one whose pong is not read, because its address is in debt, stays', async () => {
    await using strict = await ServedRelay.start({
      limits: {
        ...{ pingInterval: 30_000, unboundTimeout: 3_600_000 },
        ...{ addressBytes: 100, addressBytesBurst: 4_096 },
      },
    });
    const client = await WebSocketClient.open(strict.server.wss[0] as string, strict.ca);
    client.socket.removeAllListeners('ping');
    (client.socket as unknown as { _autoPong: boolean })._autoPong = false;
    const nextPing = () =>
      new Promise<Buffer | number>((resolve) => {
        client.socket.once('ping', resolve);
        void client.closed.then(resolve);
      });
    const first = nextPing();
    strict.clock.advance(30);
    const ping = await first;
    const request = { jsonrpc: '2.0', id: 'large', method: 'relay.info', params: {} };
    expect(await client.send(JSON.stringify(request).padEnd(8_192))).toHaveProperty('result');
    // The relay reads this when the address has paid, which takes over 30 seconds.
    client.socket.pong(ping);
    const pass = async (seconds: number) => {
      strict.clock.advance(seconds);
      await new Promise((resolve) => setImmediate(resolve));
    };
    await pass(30);
    const second = nextPing();
    // The pong is charged too, so the next ping may be due during that debt.
    for (const seconds of [30, 30]) await pass(seconds);
    expect(await second).toBeInstanceOf(Buffer);
    client.socket.terminate();
  });

  test('one that does not read is ended once the buffer is full', async () => {
    await using small = await ServedRelay.start({ limits: { sendBufferBytes: 1_048_576 } });
    const client = await WebSocketClient.open(small.server.wss[0] as string, small.ca);
    client.socket.pause();
    const text = JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'nonsense' });
    while (endings(small, 'peer reads too slowly') === 0) {
      for (let count = 0; count < 1_000; count += 1) client.socket.send(text);
      await new Promise((resolve) => setImmediate(resolve));
    }
    client.socket.resume();
    expect(await client.closed).toBe(1006);
  });

  test('one that sends too much is not read until it was quiet, and loses nothing', async () => {
    await using small = await ServedRelay.start({
      limits: { addressBytes: 100_000, addressBytesBurst: 100_000 },
    });
    const client = await small.socket();
    client.socket.send('x'.repeat(300_000));
    const pong = vi.fn();
    client.socket.on('pong', pong);
    client.socket.ping();
    const late = client.call('relay.info');
    const other = await small.socket();
    // What the other sends is read, however late: it has sent little.
    const answered = other.call('relay.info');
    let isAnswered = false;
    void answered.then(() => {
      isAnswered = true;
    });
    while (!isAnswered) await nextSecond(small);
    expect(pong).not.toHaveBeenCalled();
    let isLateAnswered = false;
    void late.then(() => {
      isLateAnswered = true;
    });
    while (!isLateAnswered) await nextSecond(small);
    expect(await client.answer(null)).toHaveProperty('error.code', parseError);
  });

  test('§18: with too many of one address, the oldest without a session makes room', async () => {
    await using small = await ServedRelay.start({
      limits: { connectionsPerAddress: 2 },
      trustedProxies: ['127.0.0.1'],
    });
    const [url] = small.server.wss as [string];
    const from = (address: string) =>
      WebSocketClient.open(url, small.ca, { 'x-forwarded-for': address });
    const ann = await small.register('ann');
    const [bound, oldest] = [await from('192.0.2.1'), await from('192.0.2.1')];
    await small.bindDevice(bound, ann.device());
    const neighbour = await from('192.0.2.1');
    expect(await oldest.closed).toBe(1006);
    expect(endings(small, 'too many connections')).toBe(1);
    await small.bindDevice(neighbour, ann.device());
    await expect(from('192.0.2.1')).rejects.toThrow(/429/);
    const other = await from('192.0.2.2');
    for (const client of [bound, neighbour, other]) {
      expect(await client.call('relay.info')).toHaveProperty('result');
      client.socket.terminate();
    }
  });

  test('§18: strangers have a share of all connections; the rest is for sessions', async () => {
    await using small = await ServedRelay.start({
      limits: { connections: 40, connectionsPerAddress: 40, strangerConnections: 8 },
    });
    const ann = await small.register('ann');
    const bound = await small.socket();
    await small.bindDevice(bound, ann.device());
    const oldest = await small.socket();
    const strangers: Client[] = [];
    while (endings(small, 'too many connections') === 0 && strangers.length < 30) {
      strangers.push(await small.socket());
    }
    expect(await oldest.closed).toBe(1006);
    expect(strangers.length).toBeLessThanOrEqual(8);
    for (const client of [bound, ...strangers]) {
      expect(await client.call('relay.info')).toHaveProperty('result');
    }
  });
});

describe('upgrades', () => {
  test('§18: a path that is no WebSocket address is method_not_found with 400', async () => {
    const url = new URL(relay.server.wss[0] as string);
    url.pathname = '/svc/v1/relay/info';
    await expect(WebSocketClient.open(url.href, relay.ca)).rejects.toThrow(/400/);
    const answer = await relay.http().send({
      verb: 'GET',
      path: '/elsewhere',
      headers: { connection: 'Upgrade', upgrade: 'websocket' },
    });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'method_not_found' });
  });

  test('a connection that ends inside its handshake is forgotten', async () => {
    const { hostname, port } = new URL(relay.server.https[0] as string);
    const raw = connect({ host: hostname, port: Number(port), ca: relay.ca });
    await new Promise((resolve) => raw.once('secureConnect', resolve));
    raw.write('GET /svc/v1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n');
    raw.destroy();
    expect(await socket.call('relay.info')).toHaveProperty('result');
  });
});

describe('02 §12.5: what is pushed', () => {
  let ann: Person;
  beforeEach(async () => {
    ann = await relay.register('ann');
  });

  test('the success response comes before the first notification', async () => {
    const order: unknown[] = [];
    socket.socket.on('message', (data) => {
      const { id, method } = JSON.parse(String(data));
      order.push(method ?? id);
    });
    const bound = await relay.bindDevice(socket, ann.device());
    const { bus } = relay.server.context;
    bus.publish([ann.timelineNotice(3)]);
    expect(await socket.notification()).toMatchObject({ params: { head: 3 } });
    expect(order).toEqual([1, bound.id, 'message.timeline.changed']);
  });

  test('a notification has no id and its version', async () => {
    await relay.bindDevice(socket, ann.device());
    relay.server.context.bus.publish([ann.timelineNotice(0)]);
    expect(await socket.notification()).toEqual({
      jsonrpc: '2.0',
      method: 'message.timeline.changed',
      params: { head: 0 },
    });
  });

  test('an account session, an expired one and another account hear nothing', async () => {
    const bob = await relay.register('bob');
    const [ofAccount, expired, ofBob] = [
      await relay.socket(),
      await relay.socket(),
      await relay.socket(),
    ];
    await relay.bindDevice(expired, ann.device());
    relay.clock.advance(86_400);
    await relay.bindAccount(ofAccount, ann);
    await relay.bindDevice(ofBob, bob.device());
    await relay.bindDevice(socket, ann.device());
    relay.server.context.bus.publish([ann.timelineNotice(1)]);
    expect(await socket.notification()).toMatchObject({ params: { head: 1 } });
    for (const deaf of [ofAccount, expired, ofBob]) {
      expect(await deaf.notificationsSoFar()).toEqual([]);
    }
  });

  test('§10.6 rule 6: what is enabled stays so across renewal', async () => {
    await relay.bindDevice(socket, ann.device());
    await relay.bindDevice(socket, ann.device());
    relay.server.context.bus.publish([ann.timelineNotice(1)]);
    expect(await socket.notification()).toMatchObject({ params: { head: 1 } });
    expect(await socket.notificationsSoFar()).toEqual([]);
  });

  test('a peer that reads slowly finds the newest hint, not all of them', async () => {
    await relay.bindDevice(socket, ann.device());
    for (let head = 0; head < 1_000; head += 1) {
      relay.server.context.bus.publish([ann.timelineNotice(head)]);
    }
    const heard = await socket.notificationsSoFar();
    expect(heard.at(-1)).toMatchObject({ params: { head: 999 } });
    expect(heard.length).toBeLessThan(10);
  });

  test('a connection that is gone is forgotten', async () => {
    await relay.bindDevice(socket, ann.device());
    socket.socket.close();
    await socket.closed;
    relay.server.context.bus.publish([ann.timelineNotice(1)]);
    const other = await relay.socket();
    await other.call('relay.info');
    expect(relay.server.context.metrics.value('connections')).toBe(1);
  });

  test('a connection that is gone before it is authenticated hears nothing either', async () => {
    const { verifier, metrics } = relay.server.context;
    const listening = vi.spyOn(Hub.prototype, 'add');
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const { promise: verifying, resolve: begin } = Promise.withResolvers<void>();
    const verify = verifier.verify.bind(verifier);
    verifier.verify = async (...checks) => {
      begin();
      await ended;
      return verify(...checks);
    };
    const bound = relay.bindDevice(socket, ann.device());
    bound.catch(() => {});
    await verifying;
    socket.socket.terminate();
    while (metrics.value('connections') > 0) await new Promise((go) => setImmediate(go));
    end();
    const calls = { method: 'auth.device.verify', transport: 'websocket', code: 'ok' };
    while (metrics.value('calls', calls) === 0) await new Promise((go) => setImmediate(go));
    expect(listening).not.toHaveBeenCalled();
    listening.mockRestore();
  });
});

function endings(of: ServedRelay, reason: string): number {
  return of.server.context.metrics.value('connections_ended', { reason });
}

async function nextSecond({ clock }: ServedRelay): Promise<void> {
  clock.advance(1);
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
}
