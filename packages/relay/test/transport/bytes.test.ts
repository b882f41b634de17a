import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { defaultLimits } from '../../src/limits.ts';
import { Receivers } from '../../src/transport/receivers.ts';
import type { Person } from '../fixtures/person.ts';
import { openGate } from '../support/gate.ts';
import { codeOf } from '../support/http.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** 02 §18: what strangers and peers that do not read can cost, with the limits of production. */

/** The limits of bytes and connections, which `--dev` raises. */
const production = Object.fromEntries(
  Object.entries(defaultLimits).filter(([name]) => /bytes|connections/i.test(name)),
);
const start = (limits = {}) => ServedRelay.start({ limits: { ...production, ...limits } });
const json = { 'content-type': 'application/json' };
const mebibyte = 1_048_576;
/** So many bytes may arrive that the limit of those in memory is met first. */
const fast = { addressBytes: 2 * mebibyte, addressBytesBurst: 16 * mebibyte };

/** Lets the event loop turn a few times, so that what is on its way arrives. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
}

/** Sends messages of strangers that stay unfinished until one connection is refused. */
async function fillAddress(relay: ServedRelay): Promise<{ codes: number[]; open: number }> {
  const codes: number[] = [];
  const sockets: WebSocketClient[] = [];
  while (codes.length === 0 && sockets.length < 40) {
    const client = await relay.socket();
    sockets.push(client);
    void client.closed.then((code) => codes.push(code));
    client.socket.send('x'.repeat(mebibyte - 1_000), { fin: false });
    while (client.socket.bufferedAmount > 0 && codes.length === 0) await turns();
    await turns();
  }
  return { codes, open: sockets.filter(({ socket }) => socket.readyState === 1).length };
}

/** Sends the headers of a request whose body arrives in chunks. */
function beginBody(relay: ServedRelay) {
  const { hostname, port, pathname } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  const answered = once(socket, 'data');
  socket.write(
    `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: x\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  return { socket, answered };
}

describe('pings', () => {
  test('RFC 6455 §5.5.3: many pings at once get few pongs, the last one for the newest', async () => {
    await using relay = await start();
    const client = await relay.socket();
    const pongs: string[] = [];
    client.socket.on('pong', (data) => pongs.push(String(data)));
    for (let count = 0; count < 2_000; count += 1) client.socket.ping(String(count));
    while (pongs.at(-1) !== '1999') await turns();
    expect(await client.call('relay.info')).toHaveProperty('result');
    expect(pongs.length).toBeLessThan(1_000);
  });

  test('02 §18: every frame costs at least 1,024 bytes of the address', async () => {
    await using relay = await start({ addressBytes: 64_000, addressBytesBurst: 128_000 });
    const client = await relay.socket();
    for (let count = 0; count < 200; count += 1) client.socket.ping();
    const body = '{}';
    const message = { verb: 'POST', path: '/auth/challenge', headers: json, body };
    let answer = await relay.http().send(message);
    // The requests themselves cost a tenth of the allowance at most.
    for (let count = 0; count < 50 && codeOf(answer) !== 'rate_limited'; count += 1) {
      answer = await relay.http().send(message);
    }
    expect(codeOf(answer)).toBe('rate_limited');
    expect(JSON.parse(answer.text).data.retry_after).toBeGreaterThanOrEqual(1);
  });

  test('a pong that was not asked for does not keep a connection alive', async () => {
    await using relay = await start({ pingInterval: 30_000 });
    const url = relay.server.wss[0] as string;
    const socket = new WebSocket(url, { ca: relay.ca, autoPong: false });
    const closed = once(socket, 'close');
    await once(socket, 'open');
    const pinged = once(socket, 'ping');
    relay.clock.advance(30);
    const [data] = await pinged;
    socket.pong('x');
    socket.pong(Buffer.concat([data as Buffer, Buffer.from('x')]));
    socket.send('{}');
    await once(socket, 'message');
    relay.clock.advance(30);
    expect((await closed)[0]).toBe(1006);
  });
});

describe('02 §18: unfinished messages and bodies', () => {
  test('of strangers of one address take 16 MiB; the newest is closed with 1013', async () => {
    await using relay = await start(fast);
    const { codes, open } = await fillAddress(relay);
    expect(codes).toEqual([1013]);
    expect(open).toBeGreaterThanOrEqual(14);
    expect(open).toBeLessThanOrEqual(16);
  });

  test("and of a neighbour with a session are its account's", async () => {
    await using relay = await start(fast);
    const ann = await relay.register('ann');
    const { token } = await relay.logInDevice(ann);
    const bound = await relay.socket();
    await relay.bindDevice(bound, ann.device());
    await fillAddress(relay);
    // Out of debt, and the unfinished messages have some time left.
    relay.clock.advance(8);
    const body = ' '.repeat(mebibyte);
    const message = { verb: 'POST', path: '/auth/challenge', headers: json, body };
    const refused = await relay.http().send(message);
    expect(codeOf(refused)).toBe('rate_limited');
    expect(refused.headers['retry-after']).toBe('10');
    const headers = { ...json, 'x-svc-session': token };
    const put = { verb: 'PUT', path: '/profile/publish', headers };
    const profile = JSON.stringify(ann.profile());
    const padded = `${profile}${' '.repeat(mebibyte)}`;
    expect(codeOf(await relay.http().send({ ...put, body: padded }))).toBe('ok');
    const padding = 'x'.repeat(mebibyte - 1_000);
    expect(await bound.call('relay.info', { padding })).toHaveProperty('result');
  });

  test('a message has 10 seconds from its first byte to its last', async () => {
    await using relay = await start();
    const [slow, other] = [await relay.socket(), await relay.socket()];
    slow.socket.send('{"jsonrpc":', { fin: false });
    expect(await other.call('relay.info')).toHaveProperty('result');
    relay.clock.advance(9);
    expect(await other.call('relay.info')).toHaveProperty('result');
    relay.clock.advance(1);
    expect(await slow.closed).toBe(1008);
    expect(await other.call('relay.info')).toHaveProperty('result');
  });

  test('with a session, a message may take longer as long as it arrives', async () => {
    await using relay = await start();
    const ann = await relay.register('ann');
    const slow = await relay.socket();
    await relay.bindDevice(slow, ann.device());
    const part = async (text: string, fin = false) => {
      slow.socket.send(text, { fin });
      const answered = once(slow.socket, 'pong');
      slow.socket.ping();
      await answered;
    };
    await part('{"jsonrpc":"2.0","id":"slow","method":"relay.info","params":{"padding":"');
    for (let seconds = 0; seconds < 40; seconds += 10) {
      await part('x'.repeat(16_384));
      relay.clock.advance(10);
    }
    await part('"}}', true);
    expect(await slow.answer('slow')).toHaveProperty('result');
    await part('{');
    relay.clock.advance(10);
    expect(await slow.closed).toBe(1008);
  });

  test('a body in chunks of one byte takes no more than another', async () => {
    await using relay = await start();
    const { socket, answered } = beginBody(relay);
    socket.write(`${'1\r\n \r\n'.repeat(100_000)}2\r\n{}\r\n0\r\n\r\n`);
    expect(String((await answered)[0])).toContain('"code":"bad_request"');
    socket.destroy();
  });

  test('the chunks of a body whose address owes are not kept one by one', async () => {
    await using relay = await start({ addressBytes: 65_536, addressBytesBurst: 262_144 });
    const push = vi.spyOn(IncomingMessage.prototype, 'push');
    using _spy = { [Symbol.dispose]: () => push.mockRestore() };
    const { socket, answered } = beginBody(relay);
    await turns();
    const client = await relay.socket();
    for (let count = 0; count < 400; count += 1) client.socket.ping();
    // Each ping takes a turn, and costs 1,024 bytes.
    for (let count = 0; count < 20; count += 1) await turns();
    socket.write(`${'1\r\n \r\n'.repeat(60_000)}2\r\n{}\r\n0\r\n\r\n`);
    for (let count = 0; count < 20; count += 1) await turns();
    // One read of the system's has 10,000 chunks; Node would keep 60,000.
    expect(push.mock.calls.length).toBeLessThan(20);
    let answer = '';
    void answered.then(([data]) => (answer = String(data)));
    while (answer === '') {
      relay.clock.advance(10);
      await turns();
    }
    expect(answer).toContain('"code":"bad_request"');
    expect(push.mock.calls.length).toBeLessThan(2_000);
    socket.destroy();
  });

  /** Counts the requests that an address may make at once. */
  async function requestsLeft(relay: ServedRelay): Promise<number> {
    const message = { verb: 'POST', path: '/auth/challenge', headers: json, body: '{}' };
    let count = 0;
    while (count < 200 && codeOf(await relay.http().send(message)) !== 'rate_limited') count += 1;
    return count;
  }
  const small = { addressBytes: 1, addressBytesBurst: 65_536 };

  test.each([
    ['one chunk', `${(1_900).toString(16)}\r\n${' '.repeat(1_900)}\r\n`, [200, 200]],
    ['chunks of one byte', '1\r\n \r\n'.repeat(1_900), [1, 100]],
    ['chunks with long extensions', `1;${'a'.repeat(15_000)}\r\n \r\n`.repeat(4), [1, 100]],
  ])(
    'a body in %s costs the address by its chunks, 32 bytes at least',
    async (_, chunks, [least = 0, most = 0]) => {
      await using relay = await start(small);
      const { socket, answered } = beginBody(relay);
      socket.write(`${chunks}0\r\n\r\n`);
      await answered;
      socket.destroy();
      const left = await requestsLeft(relay);
      expect(left).toBeGreaterThanOrEqual(least);
      expect(left).toBeLessThanOrEqual(most);
    },
  );

  test('each record of TLS with a part of the headers costs the address 256 bytes, if they are many', async () => {
    await using relay = await start(small);
    const url = new URL(relay.server.https[0] as string);
    const gate = await openGate(url);
    const socket = connect({ host: url.hostname, port: gate.port, ca: relay.ca });
    await once(socket, 'secureConnect');
    gate.close();
    for (const byte of `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(600)}\r\n\r\n`) {
      await new Promise((go) => socket.write(byte, go));
    }
    const owes = vi.spyOn(Receivers.prototype, 'pauseAll');
    using _spy = { [Symbol.dispose]: () => owes.mockRestore() };
    gate.open();
    while (owes.mock.calls.length === 0) await turns();
    expect(await requestsLeft(relay)).toBe(0);
    socket.destroy();
    // Its end is noticed when it is read again.
    relay.clock.advance(70_000);
  });

  test('each record of TLS with a part of a message costs the address 256 bytes', async () => {
    await using relay = await start(small);
    const url = new URL(relay.server.wss[0] as string);
    const gate = await openGate(url);
    const { port } = gate;
    const socket = new WebSocket(url, {
      ca: relay.ca,
      createConnection: () => connect({ host: url.hostname, port, ca: relay.ca }),
    });
    await once(socket, 'open');
    const stream = (socket as unknown as { readonly _socket: Duplex })._socket;
    // All of them arrive in one read.
    gate.close();
    const message = Buffer.concat([
      Buffer.from([0x81, 0xfe, 1, 44, 0, 0, 0, 0]),
      Buffer.alloc(300, 'x'),
    ]);
    // A write that waits for the one before would share its record.
    for (const byte of message.subarray(0, 230)) {
      await new Promise<void>((done) => stream.write(Buffer.from([byte]), () => done()));
    }
    gate.open();
    await turns();
    expect(await requestsLeft(relay)).toBeLessThan(100);
    socket.terminate();
  });

  test('what others of an address left unread keeps no neighbour from a call', async () => {
    await using relay = await start({ receivedBytesPerAddress: 4 * mebibyte });
    const debtor = await relay.socket();
    const clients = await Promise.all(Array.from({ length: 320 }, () => relay.socket()));
    for (let count = 0; count < 5_000; count += 1) debtor.socket.ping();
    await once(debtor.socket, 'pong');
    await turns();
    for (const { socket } of clients) socket.send('x'.repeat(100_000));
    await Promise.race(clients.map(({ closed }) => closed));
    const neighbour = await relay.socket();
    expect(await neighbour.call('relay.info')).toHaveProperty('result');
  });

  test('what arrives on connections that wait counts for their address', async () => {
    await using relay = await start({ receivedBytesPerAddress: 4 * mebibyte });
    const debtor = await relay.socket();
    const clients = await Promise.all(Array.from({ length: 320 }, () => relay.socket()));
    const codes: number[] = [];
    for (const { closed } of clients) void closed.then((code) => codes.push(code));
    for (let count = 0; count < 5_000; count += 1) debtor.socket.ping();
    await once(debtor.socket, 'pong');
    await turns();
    for (const { socket } of clients) socket.send('x'.repeat(100_000));
    while (codes.length === 0) await turns();
    expect(codes[0]).toBe(1013);
    expect(clients.filter(({ socket }) => socket.readyState === 1).length).toBeGreaterThan(50);
  });

  test('pings between the frames of a message do not prolong its time', async () => {
    await using relay = await start();
    const slow = await relay.socket();
    slow.socket.send('{"jsonrpc":', { fin: false });
    for (const seconds of [9, 1]) {
      const answered = once(slow.socket, 'pong');
      slow.socket.ping();
      await answered;
      relay.clock.advance(seconds);
    }
    expect(await slow.closed).toBe(1008);
  });
});

test('02 §18: of what waited at a WebSocket that ended, nothing is read any more', async () => {
  const limits = { addressBytes: 1_024, addressBytesBurst: 16_384, connectionsPerAddress: 1 };
  await using relay = await start(limits);
  const emit = vi.spyOn(WebSocket.prototype, 'emit');
  using _spy = { [Symbol.dispose]: () => emit.mockRestore() };
  const pings = () => emit.mock.calls.filter(([name]) => name === 'ping').length;
  const client = await relay.socket();
  const stream = (client.socket as unknown as { readonly _socket: Duplex })._socket;
  // Of eight bytes: whatever piece of them is read begins with a whole one.
  stream.write(Buffer.alloc(160_000, Buffer.from([0x89, 0x82, 0, 0, 0, 0, 0, 0])));
  for (let count = 0; count < 20; count += 1) await turns();
  const before = pings();
  expect(before).toBeGreaterThan(0);
  // A newer connection of the address ends it.
  const newer = relay.socket();
  await client.closed;
  await turns();
  expect(pings()).toBe(before);
  (await newer).socket.terminate();
});

describe('02 §18: what a peer sends after its WebSocket was closed', () => {
  test('is received up to the size of a message, and charged, then no more', async () => {
    await using relay = await start({ addressBytesBurst: 1_360_000 });
    const { hostname, port, pathname } = new URL(relay.server.https[0] as string);
    const peer = connect({
      ...{ host: hostname, port: Number(port), ca: relay.ca, allowHalfOpen: true },
    });
    peer.on('error', () => {}).resume();
    peer.write(
      `GET ${pathname} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    await once(peer, 'data');
    const closed = once(peer, 'end');
    // An empty binary message, which is refused.
    peer.write(Buffer.from([0x82, 0x80, 0, 0, 0, 0]));
    await closed;
    peer.write(Buffer.alloc(48 * mebibyte));
    const other = await relay.socket();
    for (let count = 0; count < 200; count += 1) await other.call('relay.info');
    expect(peer.writableLength).toBeGreaterThan(16 * mebibyte);
    // Without what was dropped, the calls and these bodies are less than the allowance.
    const body = ' '.repeat(8_000);
    const message = { verb: 'POST', path: '/auth/challenge', headers: json, body };
    let answer = await relay.http().send(message);
    for (let count = 1; count < 20 && codeOf(answer) !== 'rate_limited'; count += 1) {
      answer = await relay.http().send(message);
    }
    expect(codeOf(answer)).toBe('rate_limited');
    peer.destroy();
  });
});

describe('02 §18: connections without a session', () => {
  const limits = { unboundTimeout: 60_000, pingInterval: 30_000, sendTimeout: 2_147_483_647 };
  let ann: Person;

  test('live on while they make calls that are accepted, or one is under way', async () => {
    await using relay = await start(limits);
    const [reader, refused] = [await relay.socket(), await relay.socket()];
    for (let seconds = 0; seconds < 150; seconds += 30) {
      expect(await reader.call('relay.info')).toHaveProperty('result');
      if (seconds < 60) expect(await refused.call('nonsense')).toHaveProperty('error');
      relay.clock.advance(30);
    }
    expect(await refused.closed).toBe(1008);
    expect(await reader.call('relay.info')).toHaveProperty('result');
    relay.clock.advance(60);
    expect(await reader.closed).toBe(1008);
  });

  test('have 60 seconds, those with one stay; after its end they have 60 again', async () => {
    await using relay = await start(limits);
    ann = await relay.register('ann');
    const [stranger, bound] = [await relay.socket(), await relay.socket()];
    await relay.bindDevice(bound, ann.device());
    const tick = async (seconds: number) => {
      const pinged = once(bound.socket, 'ping');
      relay.clock.advance(seconds);
      await pinged;
      // Open still; a call that is refused does not count.
      expect(await bound.call('nonsense')).toHaveProperty('error');
    };
    await tick(30);
    expect(await stranger.call('nonsense')).toHaveProperty('error');
    await tick(30);
    expect(await stranger.closed).toBe(1008);
    // The session ends.
    await tick(86_400);
    await tick(30);
    relay.clock.advance(30);
    expect(await bound.closed).toBe(1008);
  });
});

describe('02 §18: answers', () => {
  test('of many requests at once wait for a peer that reads; it is not ended', async () => {
    // Four answers fill the buffer.
    const limits = { messageCharge: mebibyte / 4, sendBufferBytes: mebibyte };
    await using relay = await start(limits);
    const client = await relay.socket();
    const calls = Array.from({ length: 60 }, () => client.call('relay.info'));
    for (const answer of await Promise.all(calls)) expect(answer).toHaveProperty('result');
  });
});

describe('02 §18: peers that do not read', () => {
  test('take an answer within the time allowed, or are ended', async () => {
    await using relay = await start({ sendBufferBytes: 16_777_216 });
    const client = await relay.socket();
    client.socket.pause();
    const text = JSON.stringify({ jsonrpc: '2.0', id: 'x', method: 'nonsense' });
    const ended = { reason: 'peer reads too slowly' };
    const { metrics } = relay.server.context;
    while (metrics.value('connections_ended', ended) === 0) {
      for (let count = 0; count < 1_000; count += 1) client.socket.send(text);
      await turns();
      relay.clock.advance(61);
      await turns();
    }
    client.socket.resume();
    expect(await client.closed).toBe(1006);
  });
});
