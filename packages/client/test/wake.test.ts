/** Waking a client that waits before its next try (02 §12.9), on a clock that stands still. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { patience } from '../../relay/test/support/patience.ts';
import { browserWake } from '../src/follow/browser-wake.ts';
import {
  type Account,
  type AccountEvent,
  type HttpRequest,
  RelayUnreachable,
  type Socket,
  type SocketEvents,
  type Transport,
} from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { isConnected, isDisconnected } from './support/connection-events.ts';
import { befriend, relayWithClients } from './support/relay-with-clients.ts';
import { StillClock } from './support/still-clock.ts';

const world = relayWithClients();

/** A network that works, refuses, or is silent: requests get no answer, and sockets stay open. */
class Weather implements Transport, Disposable {
  state: 'good' | 'refusing' | 'silent' = 'good';
  tries = 0;
  readonly #inner: NodeTransport;
  readonly #sockets = new Set<{ cut(): void; isDead: boolean }>();

  constructor(ca: string) {
    this.#inner = new NodeTransport({ ca });
  }

  async request(request: HttpRequest) {
    await this.#pass(request.signal);
    return await this.#inner.request(request);
  }

  async connect(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket> {
    await this.#pass(signal);
    let inner: Socket | undefined;
    const line = {
      isDead: false,
      cut: () => {
        line.isDead = true;
        inner?.close(1000);
        events.closed('cut by the test');
      },
    };
    const socket = await this.#inner.connect(
      url,
      {
        ...events,
        message: (text) => {
          if (!line.isDead) events.message(text);
        },
      },
      signal,
    );
    inner = socket;
    this.#sockets.add(line);
    return {
      send: (text) => {
        if (!line.isDead) socket.send(text);
      },
      close: (code) => socket.close(code),
    };
  }

  [Symbol.dispose](): void {
    this.#inner[Symbol.dispose]();
  }

  /** Ends all connections at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.cut();
    this.#sockets.clear();
  }

  /** Leaves all connections open, and lets nothing pass them any more. */
  kill(): void {
    for (const socket of this.#sockets) socket.isDead = true;
    this.#sockets.clear();
  }

  async #pass(signal: AbortSignal): Promise<void> {
    this.tries += 1;
    if (this.state === 'refusing') {
      throw new RelayUnreachable('refused by the test', { outcomeUnknown: false });
    }
    if (this.state === 'good') return;
    signal.throwIfAborted();
    await new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }
}

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function follower(options: { readonly prefer?: 'http' } = {}) {
  const clock = new StillClock(world.clock.milliseconds());
  const weather = new Weather(world.ca);
  const client = await world.client({ clock, transport: weather, ...options });
  const account = await client.setUp();
  closing.push(async () => {
    await client[Symbol.asyncDispose]();
    weather[Symbol.dispose]();
  });
  return { clock, weather, account };
}

/** Follows an account and collects its events. */
function collect(account: Account, options: Partial<Parameters<Account['follow']>[0]> = {}) {
  const stop = new AbortController();
  const seen: AccountEvent[] = [];
  const done = (async () => {
    for await (const event of account.follow({ signal: stop.signal, ...options })) seen.push(event);
  })();
  closing.push(async () => {
    stop.abort();
    await done;
  });
  return { seen, stop, done };
}

const connections = (seen: readonly AccountEvent[]) => seen.filter(isConnected).length;

/** Moves the clock over one wait after the other, until a condition holds. */
async function passUntil(clock: StillClock, isReached: () => boolean): Promise<void> {
  while (!isReached()) {
    const before = clock.waits.length;
    await vi.waitFor(() => expect(clock.waits.length > 0 || isReached()).toBe(true), patience);
    const [next] = clock.waits;
    if (next !== undefined && !isReached()) clock.advance(next);
    else if (before === 0) continue;
  }
}

describe('02 §12.9: a woken client connects without waiting', () => {
  test('after an outage however long, the clock need not move', async () => {
    const { clock, weather, account } = await follower();
    const { seen } = collect(account);
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    weather.state = 'refusing';
    weather.cut();
    await passUntil(clock, () => seen.filter(isDisconnected).length === 9);
    const lost = seen.findLast(isDisconnected);
    expect(lost?.nextTryAt).toBeGreaterThan(clock.milliseconds());
    weather.state = 'good';
    account.wake();
    await vi.waitFor(() => expect(connections(seen)).toBe(2), patience);
  });

  test('a connection that only looks open is found within half a second and replaced', async () => {
    const { clock, weather, account } = await follower();
    const { seen } = collect(account);
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    weather.kill();
    account.wake();
    await vi.waitFor(() => expect(clock.waits[0]).toBe(500), patience);
    clock.advance(500);
    await vi.waitFor(() => expect(connections(seen)).toBe(2), patience);
  });

  test('a connection that answers stays', async () => {
    const { weather, account } = await follower();
    const { seen } = collect(account);
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    const { tries } = weather;
    account.wake();
    await account.messages.send(account.id, { text: 'over the same connection' });
    expect(weather.tries).toBe(tries);
    expect(seen.filter(isDisconnected)).toEqual([]);
  });

  test('an attempt that hangs since before the wake is given up for a new one', async () => {
    const { clock, weather, account } = await follower();
    weather.state = 'silent';
    const { seen } = collect(account);
    const { tries } = weather;
    await vi.waitFor(() => expect(weather.tries).toBeGreaterThan(tries), patience);
    weather.state = 'good';
    clock.advance(5_000);
    account.wake();
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    expect(seen.filter(isDisconnected)).toEqual([]);
  });

  test('over HTTPS, everything is read at once', async () => {
    const { account } = await follower({ prefer: 'http' });
    const { seen } = collect(account, { pollInterval: 3_600_000 });
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    const other = await world.person();
    await other.contacts.join((await account.contacts.invite()).text);
    account.wake();
    await expect.poll(() => seen.map(({ kind }) => kind), patience).toContain('contact-request');
  });

  test('02 §5: a wait that the relay asked for stays', async () => {
    const { clock, weather, account } = await follower({ prefer: 'http' });
    const request = weather.request.bind(weather);
    let asks = 0;
    weather.request = async (asked) => {
      const error = { code: 'rate_limited', message: '', data: { retry_after: 50 } };
      const body = new TextEncoder().encode(JSON.stringify(error));
      if (!asked.url.includes('/device/state/resolve')) return await request(asked);
      asks += 1;
      return { status: 429, contentType: 'application/json', body };
    };
    const { seen } = collect(account);
    await passUntil(clock, () => seen.some(isDisconnected));
    const before = asks;
    await vi.waitFor(() => expect(clock.waits.length).toBeGreaterThan(0), patience);
    for (let second = 0; second < 49; second += 1) {
      account.wake();
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
    expect(asks).toBe(before);
  });
});

/** A follower whose clock was put back by a day once it was connected, and a contact of it. */
async function putBack() {
  const { clock, account } = await follower();
  const ann = await world.person();
  await befriend(ann, account);
  const { seen } = collect(account);
  await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
  clock.advance(-86_400_000);
  return { clock, account, ann, seen };
}

test('02 §12.9: with a clock put back by a day, everything is read after a minute all the same', async () => {
  const { clock, account, ann, seen } = await putBack();
  await ann.messages.send(account.id, { text: 'a reason to read' });
  const isRead = () => seen.some(({ kind }) => kind === 'message');
  await vi.waitFor(() => expect(isRead()).toBe(true), patience);
  await vi.waitFor(() => expect(clock.waits[0]).toBe(60_000), patience);
});

test('02 §12.9: with a clock put back, notifications do not put the read of everything off', async () => {
  const { clock, account, ann, seen } = await putBack();
  const received = () => seen.filter(({ kind }) => kind === 'message').length;
  for (const [index, wait] of [60_000, 30_000].entries()) {
    if (index > 0) clock.advance(30_000);
    await ann.messages.send(account.id, { text: 'a reason to read' });
    await vi.waitFor(() => expect(received()).toBe(index + 1), patience);
    await vi.waitFor(() => expect(clock.waits[0]).toBe(wait), patience);
  }
});

describe('waking is bounded', () => {
  test('a thousand wakes are one try at once and one after a second', async () => {
    const { clock, weather, account } = await follower();
    weather.state = 'refusing';
    const { seen } = collect(account);
    await passUntil(clock, () => seen.filter(isDisconnected).length === 6);
    await vi.waitFor(() => expect(clock.waits.length).toBeGreaterThan(0), patience);
    const failures = () => seen.filter(isDisconnected).length;
    for (let n = 0; n < 1_000; n += 1) account.wake();
    await vi.waitFor(() => expect(failures()).toBe(7), patience);
    for (let n = 0; n < 1_000; n += 1) account.wake();
    await new Promise(setImmediate);
    expect(failures()).toBe(7);
  });

  test('each attempt that a wake gives up leaves the next one twice the time', async () => {
    const { clock, weather, account } = await follower();
    weather.state = 'silent';
    const before = weather.tries;
    collect(account);
    await vi.waitFor(() => expect(weather.tries).toBe(before + 1), patience);
    // A wake each second, and time in steps of a tenth.
    for (let tenth = 0; tenth < 300; tenth += 1) {
      if (tenth % 10 === 0) account.wake();
      clock.advance(100);
      await new Promise(setImmediate);
    }
    // At 0.5, 1.5, 3.5, 7.5 and 15.5 s; the sixth has its time until 31.5 s.
    expect(weather.tries - before).toBe(6);
  });

  test('after following, the source is left', async () => {
    const { account } = await follower();
    let wake: (() => void) | undefined;
    const source = (given: () => void) => {
      wake = given;
      return {
        [Symbol.dispose]: () => {
          wake = undefined;
        },
      };
    };
    const { seen, stop, done } = collect(account, { wake: source });
    await vi.waitFor(() => expect(connections(seen)).toBe(1), patience);
    expect(wake).toBeDefined();
    stop.abort();
    await done;
    expect(wake).toBeUndefined();
  });
});

test('a page wakes its client when it is online, shown or resumed, and not when hidden', () => {
  const window = new EventTarget();
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  const wake = vi.fn();
  const source = browserWake({ window, document })(wake);
  window.dispatchEvent(new Event('online'));
  window.dispatchEvent(new Event('pageshow'));
  document.dispatchEvent(new Event('resume'));
  document.dispatchEvent(new Event('visibilitychange'));
  expect(wake).toHaveBeenCalledTimes(4);
  document.visibilityState = 'hidden';
  document.dispatchEvent(new Event('visibilitychange'));
  source[Symbol.dispose]();
  window.dispatchEvent(new Event('online'));
  expect(wake).toHaveBeenCalledTimes(4);
});
