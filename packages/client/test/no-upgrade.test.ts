/** Following through a proxy that passes no WebSocket on: the client says so soon, and polls. */
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Account, AccountEvent } from '../src/index.ts';
import { isConnected } from './support/connection-events.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, texts } from './support/relay-with-clients.ts';

let relay: LyingRelay;
let ann: Account;
let bob: Account;
beforeAll(async () => {
  relay = await LyingRelay.start();
  ann = await relay.world.person({});
  bob = await relay.world.person({});
  await befriend(ann, bob);
});
afterEach(() => {
  vi.restoreAllMocks();
  relay.behave();
});
afterAll(() => relay[Symbol.asyncDispose]());

/** Milliseconds for which the client may say nothing. */
const patience = 5_000;
/** Times by which deadlines come sooner than they would. */
const haste = 10;

/** Shortens every deadline, and adds up those that passed: the time for which nothing happened. */
function passedDeadlines(): () => number {
  let passed = 0;
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((milliseconds) => {
    const signal = timeout(milliseconds / haste);
    signal.addEventListener('abort', () => {
      passed += milliseconds;
    });
    return signal;
  });
  return () => passed;
}

const answer = (status: string) => (socket: Duplex) =>
  void socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);

/** What proxies do with a request for a WebSocket. */
const proxies: readonly [string, NonNullable<LyingRelay['insteadOfUpgrade']>][] = [
  ['answers 400', answer('400 Bad Request')],
  ['answers 200', answer('200 OK')],
  ['ends the connection', (socket) => void socket.destroy()],
  ['never answers', () => {}],
  ['agrees, and passes no message on', (_, agree) => agree()],
];

async function next(
  events: AsyncGenerator<AccountEvent>,
  fits: (event: AccountEvent) => boolean,
): Promise<AccountEvent> {
  for await (const event of { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) }) {
    if (fits(event)) return event;
  }
  throw new Error('following ended');
}

test.each(proxies)('02 §12: if a proxy %s, the client polls within 5 s', async (does, proxy) => {
  const stop = new AbortController();
  const events = bob.follow({ signal: stop.signal, pollInterval: 10 });
  await next(events, isConnected);
  const passed = passedDeadlines();
  relay.insteadOfUpgrade = proxy;
  relay.cut();
  expect(await next(events, isConnected)).toMatchObject({ transport: 'http' });
  expect(passed()).toBeLessThanOrEqual(patience);
  const text = `past a proxy that ${does}`;
  await ann.messages.send(bob.id, { text });
  await next(events, ({ kind }) => kind === 'message');
  expect(await texts(bob)).toContain(text);
  // It asks for a WebSocket again and again, and uses the first one that it gets.
  const before = relay.upgrades;
  await expect.poll(() => relay.upgrades).toBeGreaterThan(before);
  relay.behave();
  expect(await next(events, isConnected)).toMatchObject({ transport: 'websocket' });
  stop.abort();
});

test('02 §12: while a WebSocket is tried again, calls go on over HTTPS', async () => {
  const stop = new AbortController();
  const events = bob.follow({ signal: stop.signal, pollInterval: 10 });
  await next(events, isConnected);
  relay.insteadOfUpgrade = answer('400 Bad Request');
  relay.cut();
  expect(await next(events, isConnected)).toMatchObject({ transport: 'http' });
  // From now on no try ends: the deadline of none passes.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal);
  const held: Duplex[] = [];
  relay.insteadOfUpgrade = (socket) => void held.push(socket);
  await expect.poll(() => held.length).toBeGreaterThan(0);
  await bob.sync();
  const { status } = await bob.messages.send(ann.id, { text: 'meanwhile' });
  expect(status).toBe('target_accepted');
  expect(held).toHaveLength(1);
  stop.abort();
  for (const socket of held) socket.destroy();
});
