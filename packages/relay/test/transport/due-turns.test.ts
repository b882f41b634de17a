/** 02 §18, 0019: what did not come in time ends over several turns of the event loop, if all is due at one moment. */
import { OutgoingMessage } from 'node:http';
import { connect } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { StorageReach } from '../../src/notifications/storage-reach.ts';
import { ArrivalDeadline } from '../../src/transport/arrival-deadline.ts';
import { fullTurns, holdSteps, turn } from '../support/full-turns.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const relay = servedRelay();
const ann = relay.person('ann');

/** Watches deadlines begin; resolves when so many have begun. */
function watchDeadlines() {
  const start = vi.spyOn(ArrivalDeadline.prototype, 'start');
  return {
    begun: async (count: number) => {
      while (new Set(start.mock.contexts).size < count) await turn();
    },
    [Symbol.dispose]: () => start.mockRestore(),
  };
}

/** Sends a request without the last bytes of its body. */
function beginBody() {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  const body = JSON.stringify({ account: ann.account });
  let received = '';
  const ended = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(received)).on('error', () => {});
    socket.on('data', (data) => {
      received += data;
    });
  });
  socket.write(
    'POST /svc/v1/auth/challenge HTTP/1.1\r\nHost: x\r\nConnection: close\r\n' +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
  );
  return { complete: () => socket.write(body.slice(9)), ended };
}

const late = /^HTTP\/1\.1 503 [\s\S]*"temporarily_unavailable"/;

test('0019: of three unfinished bodies one ends in each turn, and all are answered', async () => {
  using deadlines = watchDeadlines();
  const bodies = [beginBody(), beginBody(), beginBody()];
  await deadlines.begun(3);
  const setHeader = vi.spyOn(OutgoingMessage.prototype, 'setHeader');
  using _spy = { [Symbol.dispose]: () => setHeader.mockRestore() };
  // What a body that is late does first.
  const ended = () =>
    new Set(
      setHeader.mock.contexts.filter((_, index) => setHeader.mock.calls[index]?.[1] === 'close'),
    );
  using _full = fullTurns();
  relay.clock.advance(30);
  for (const count of [0, 1, 2, 3]) {
    expect(ended().size).toBe(count);
    await turn();
  }
  for (const body of bodies) expect(await body.ended).toMatch(late);
});

test('02 §18: a body that completes while it waits for its turn is answered as usual', async () => {
  using deadlines = watchDeadlines();
  const bodies = [beginBody(), beginBody(), beginBody()];
  await deadlines.begun(3);
  const { owners, release } = holdSteps(() => relay.clock.advance(30));
  expect(owners).toEqual(Array.from({ length: 3 }, () => 'address 127.0.0.1'));
  bodies[1]?.complete();
  expect(await bodies[1]?.ended).toMatch(/^HTTP\/1\.1 200 [\s\S]*"nonce"/);
  release();
  expect(await bodies[0]?.ended).toMatch(late);
  expect(await bodies[2]?.ended).toMatch(late);
});

/** Opens a WebSocket and sends the beginning of a message. */
async function beginMessage() {
  const client = await relay.socket();
  client.socket.send('{"jsonrpc":"2.0","id":7,', { fin: false });
  return client;
}

test('0019: of three unfinished WebSocket messages one ends in each turn, and all close with 1008', async () => {
  using deadlines = watchDeadlines();
  const clients = [await beginMessage(), await beginMessage(), await beginMessage()];
  await deadlines.begun(3);
  const close = vi.spyOn(WebSocket.prototype, 'close');
  using _spy = { [Symbol.dispose]: () => close.mockRestore() };
  const ended = () => close.mock.calls.filter(([, reason]) => reason === 'message unfinished');
  using _full = fullTurns();
  relay.clock.advance(10);
  for (const count of [0, 1, 2, 3]) {
    expect(ended()).toHaveLength(count);
    await turn();
  }
  for (const client of clients) expect(await client.closed).toBe(1008);
});

test('02 §18: a WebSocket message that completes while it waits for its turn is answered', async () => {
  using deadlines = watchDeadlines();
  const clients = [await beginMessage(), await beginMessage(), await beginMessage()];
  await deadlines.begun(3);
  const { owners, release } = holdSteps(() => relay.clock.advance(10));
  expect(owners).toHaveLength(3);
  clients[1]?.socket.send('"method":"relay.info"}', { fin: true });
  expect(await clients[1]?.answer(7)).toHaveProperty('result');
  release();
  expect(await clients[0]?.closed).toBe(1008);
  expect(await clients[2]?.closed).toBe(1008);
  expect(await clients[1]?.call('relay.info')).toHaveProperty('result');
});

test('0019: of three WebSockets without a session one ends in each turn, and all close with 1008', async () => {
  await using short = await ServedRelay.start({ limits: { unboundTimeout: 60_000 } });
  const clients = [await short.socket(), await short.socket(), await short.socket()];
  const close = vi.spyOn(WebSocket.prototype, 'close');
  using _spy = { [Symbol.dispose]: () => close.mockRestore() };
  const ended = () => close.mock.calls.filter(([, reason]) => reason === 'no session');
  using _full = fullTurns();
  short.clock.advance(60);
  for (const count of [0, 1, 2, 3]) {
    expect(ended()).toHaveLength(count);
    await turn();
  }
  for (const client of clients) expect(await client.closed).toBe(1008);
});

test('02 §18: a WebSocket that gets a session, or makes an accepted call, while it waits for its turn stays', async () => {
  await using short = await ServedRelay.start({ limits: { unboundTimeout: 60_000 } });
  const bob = await short.register('bob');
  const bound = await short.socket();
  const calls = await short.socket();
  const refused = await short.socket();
  const { owners, release } = holdSteps(() => short.clock.advance(60));
  expect(owners).toHaveLength(3);
  expect(await short.bindDevice(bound, bob.device())).toHaveProperty('result');
  expect(await calls.call('relay.info')).toHaveProperty('result');
  expect(await refused.call('nonsense')).toHaveProperty('error');
  release();
  expect(await refused.closed).toBe(1008);
  for (const client of [bound, calls]) {
    expect(await client.call('relay.info')).toHaveProperty('result');
  }
  short.clock.advance(60);
  expect(await calls.closed).toBe(1008);
  expect(await bound.call('relay.info')).toHaveProperty('result');
});

/** Notes how many WebSockets a reason was told to, until disposed. */
function toldOf(reason: string) {
  const close = vi.spyOn(WebSocket.prototype, 'close');
  return {
    count: () => close.mock.calls.filter(([, told]) => told === reason).length,
    [Symbol.dispose]: () => close.mockRestore(),
  };
}

/** Lets turns pass until all three are told; expects one more of them in a turn, at most. */
async function expectOneInEachTurn(count: () => number): Promise<void> {
  for (let before = 0; before < 3; before = count()) {
    await turn();
    expect(count() - before).toBeLessThanOrEqual(1);
  }
}

test('0019: a relay that stops tells one of three WebSockets in each turn', async () => {
  const clients = [await relay.socket(), await relay.socket(), await relay.socket()];
  using told = toldOf('relay stops');
  const full = fullTurns();
  const stopped = relay.server[Symbol.asyncDispose]();
  await expectOneInEachTurn(told.count);
  full[Symbol.dispose]();
  for (const client of clients) expect(await client.closed).toBe(1001);
  await stopped;
});

test('0019: a relay whose storage is out of reach sends one of three WebSockets away in each turn', async () => {
  const clients = [await relay.socket(), await relay.socket(), await relay.socket()];
  using told = toldOf('storage out of reach');
  const { availability, bus } = relay.server.context;
  // As one of several processes that reaches neither storage nor the bus.
  Object.assign(bus, { isShared: true, isConnected: false });
  using _full = fullTurns();
  (availability as StorageReach).update(false);
  await expectOneInEachTurn(told.count);
  for (const client of clients) expect(await client.closed).toBe(1013);
});
