/** Sessions, retries and lost answers, with a network that breaks between client and relay. */
import type { ServerResponse } from 'node:http';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocketWire } from '../src/connect/websocket-wire.ts';
import { type Account, type AccountEvent, MemoryStore, type Transport } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { LeapingClock } from './support/clock.ts';
import { isConnected, isDisconnected } from './support/connection-events.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, texts } from './support/relay-with-clients.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start();
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Tries that follow each other at once. */
const eager = { attempts: 3, base: 1, cap: 1 };
const once = { attempts: 1, base: 1, cap: 1 };

const person = (options: Parameters<LyingRelay['world']['person']>[0] = {}) =>
  relay.world.person({ retry: eager, ...options });

/** How many requests of a method arrive while work is done. */
async function countOf(method: string, work: () => Promise<unknown>): Promise<number> {
  const before = relay.asked.get(method) ?? 0;
  await work();
  return (relay.asked.get(method) ?? 0) - before;
}

function refuse(response: ServerResponse, status: number, error: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ message: '', ...error }));
}

describe('02 §10: sessions', () => {
  test('over HTTP alone, everything works', async () => {
    const [ann, bob] = [await person({ prefer: 'http' }), await person({ prefer: 'http' })];
    await befriend(ann, bob);
    await ann.messages.send(bob.id, { text: 'by post' });
    await bob.sync();
    expect(await texts(bob)).toEqual(['by post']);
  });

  test('a platform without WebSockets uses HTTPS', async () => {
    using transport = new NodeTransport({ ca: relay.world.ca });
    const { request } = transport;
    const ann = await person({ transport: { request: request.bind(transport) } });
    const before = relay.sockets;
    expect(await ann.sync()).toEqual([]);
    expect(relay.sockets).toBe(before);
  });

  test('02 §18: over HTTPS, calls that need no session carry the session all the same', async () => {
    using inner = new NodeTransport({ ca: relay.world.ca });
    const carried: boolean[] = [];
    const request: NodeTransport['request'] = async (asked) => {
      const { pathname } = new URL(asked.url);
      if (pathname.endsWith('/relay/info')) {
        carried.push(Object.hasOwn(asked.headers, 'x-svc-session'));
      }
      return await inner.request(asked);
    };
    const ann = await person({ prefer: 'http', transport: { request } });
    await ann.sync();
    expect(carried).not.toContain(true);
    carried.length = 0;
    await ann.groups.create({ name: 'mine' });
    expect(carried).toEqual([true]);
  });

  test('02 §3.8: if the first message breaks a rule before the connection is used, it is closed', async () => {
    const closed: (number | undefined)[] = [];
    const transport: Transport = {
      request: () => Promise.reject(new Error('not asked')),
      connect: async (_, events) => {
        events.message('nonsense');
        return { send: () => undefined, close: (code) => closed.push(code) };
      },
    };
    const { signal } = new AbortController();
    const opening = WebSocketWire.open('wss://relay.example', transport, {
      listener: () => undefined,
      signal,
    });
    await expect(opening).rejects.toMatchObject({ reason: 'malformed_response' });
    expect(closed).toEqual([1008]);
  });

  test('one session serves many calls, on either transport', async () => {
    for (const prefer of ['websocket', 'http'] as const) {
      const ann = await person({ prefer });
      const verified = await countOf('auth.device.verify', async () => {
        await ann.sync();
        await ann.sync();
        await ann.devices.list();
      });
      expect(verified).toBe(1);
    }
  });

  test('02 §10.6: a WebSocket renews its session by itself and stays open', async () => {
    const ann = await person();
    // Other people's connections, left open, would renew theirs too.
    relay.cut();
    await ann.sync();
    const sockets = relay.sockets;
    const verified = () => relay.asked.get('auth.device.verify') ?? 0;
    const before = verified();
    relay.world.clock.advance(75_000);
    // There are no calls: notifications depend on the session too.
    await expect.poll(verified).toBe(before + 1);
    await ann.sync();
    expect({ verified: verified(), sockets: relay.sockets }).toEqual({
      verified: before + 1,
      sockets,
    });
    // The old session would be over now.
    relay.world.clock.advance(30_000);
    expect(await ann.sync()).toEqual([]);
  });

  test('02 §10.5: after its session is over a WebSocket is left for a new one', async () => {
    const ann = await person();
    await ann.sync();
    relay.lie('auth.device.verify', (session) => ({ ...session, mode: 'account' }));
    relay.world.clock.advance(100_000);
    await expect(ann.sync()).rejects.toMatchObject({ reason: 'wrong_session_mode' });
    relay.behave();
    expect(await ann.sync()).toEqual([]);
  });

  test('02 §9.6: clocks apart by an hour, either way', async () => {
    for (const seconds of [3_600, -3_600]) {
      const clock = new LeapingClock();
      clock.advance((relay.world.clock.milliseconds() - clock.milliseconds()) / 1_000 + seconds);
      const ann = await person({ clock });
      const note = await ann.messages.send(ann.id, { text: 'what time is it?' });
      expect(note.status).toBe('target_accepted');
    }
  });

  test('after unauthorized it authenticates again, once', async () => {
    const ann = await person({ prefer: 'http' });
    await ann.sync();
    relay.overHttp.set('device.state.resolve', (response) => {
      relay.overHttp.clear();
      refuse(response, 401, { code: 'unauthorized' });
    });
    expect(await countOf('auth.device.verify', () => ann.sync())).toBe(1);
    relay.overHttp.set('device.state.resolve', (response) => {
      refuse(response, 401, { code: 'unauthorized' });
    });
    const asked = await countOf('device.state.resolve', async () => {
      await expect(ann.sync()).rejects.toMatchObject({ error: 'unauthorized' });
    });
    expect(asked).toBe(2);
  });
});

describe('02 §4.3, §5: trying again', () => {
  test('what is temporary is tried again', async () => {
    const ann = await person({ prefer: 'http' });
    let left = 2;
    relay.overHttp.set('device.state.resolve', (response) => {
      left -= 1;
      if (left === 0) relay.overHttp.clear();
      refuse(response, 503, { code: 'temporarily_unavailable' });
    });
    expect(await countOf('device.state.resolve', () => ann.sync())).toBe(3);
  });

  test('but not for ever', async () => {
    const ann = await person({ prefer: 'http' });
    relay.overHttp.set('device.state.resolve', (response) => {
      refuse(response, 503, { code: 'internal_error' });
    });
    const asked = await countOf('device.state.resolve', async () => {
      await expect(ann.sync()).rejects.toMatchObject({ error: 'internal_error' });
    });
    expect(asked).toBe(eager.attempts);
  });

  test('what is permanent is not', async () => {
    const ann = await person({ prefer: 'http' });
    relay.overHttp.set('device.state.resolve', (response) => {
      refuse(response, 403, { code: 'forbidden' });
    });
    const asked = await countOf('device.state.resolve', async () => {
      await expect(ann.sync()).rejects.toMatchObject({ error: 'forbidden' });
    });
    expect(asked).toBe(1);
  });

  test('a long hint to wait is for the caller to decide about', async () => {
    const ann = await person({ prefer: 'http' });
    relay.overHttp.set('device.state.resolve', (response) => {
      refuse(response, 429, { code: 'rate_limited', data: { retry_after: 3_600 } });
    });
    const asked = await countOf('device.state.resolve', async () => {
      await expect(ann.sync()).rejects.toMatchObject({ error: 'rate_limited', retryAfter: 3_600 });
    });
    expect(asked).toBe(1);
  });

  test('what a proxy answers by itself is no answer of the relay', async () => {
    const ann = await person({ prefer: 'http', retry: once });
    relay.overHttp.set('device.state.resolve', (response) => {
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
    });
    await expect(ann.sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
  });

  test('an answer that does not come ends with the timeout', async () => {
    const ann = await person({ prefer: 'http', retry: once, timeout: 200 });
    relay.overHttp.set('device.state.resolve', () => {});
    await expect(ann.sync()).rejects.toMatchObject({
      code: 'relay_unreachable',
      outcomeUnknown: true,
    });
  });

  test('a signal ends an operation with its own reason', async () => {
    const ann = await person({ prefer: 'http' });
    relay.overHttp.set('device.state.resolve', () => {});
    const stop = new AbortController();
    const working = ann.sync({ signal: stop.signal });
    stop.abort(new Error('enough'));
    await expect(working).rejects.toThrow('enough');
  });
});

describe.each(['websocket', 'http'] as const)('lost answers, over %s', (prefer) => {
  async function friends(retry = eager): Promise<[Account, Account]> {
    const [ann, bob] = [await person({ prefer, retry }), await person({ prefer })];
    await befriend(ann, bob);
    return [ann, bob];
  }

  test('04 §15.1: a message whose answer was lost goes out again, unchanged', async () => {
    const [ann, bob] = await friends();
    relay.lose('message.send', 2);
    const asked = await countOf('message.send', async () => {
      const sent = await ann.messages.send(bob.id, { text: 'once' });
      expect(sent.status).toBe('target_accepted');
    });
    expect(asked).toBe(3);
    await bob.sync();
    expect(await texts(bob)).toEqual(['once']);
  });

  test('it stays in the outbox where the answer never comes, and goes out with the next sync', async () => {
    const [ann, bob] = await friends(once);
    relay.lose('message.send', 1);
    await expect(ann.messages.send(bob.id, { text: 'late' })).rejects.toMatchObject({
      code: 'relay_unreachable',
    });
    expect((await ann.status()).outbox).toBe(1);
    expect(await ann.messages.list()).toMatchObject([{ status: 'sending' }]);
    await ann.sync();
    expect((await ann.status()).outbox).toBe(0);
    expect(await ann.messages.list()).toMatchObject([{ status: 'target_accepted' }]);
    await bob.sync();
    expect(await texts(bob)).toEqual(['late']);
  });

  test('03 §15.2: a consent whose answer was lost still makes the contact', async () => {
    const [ann, bob] = [await person({ prefer, retry: once }), await person({ prefer })];
    const { text: invite } = await bob.contacts.invite();
    relay.lose('message.send', 1);
    await expect(ann.contacts.join(invite)).rejects.toMatchObject({
      code: 'relay_unreachable',
    });
    await bob.sync();
    await bob.contacts.approve(ann.id);
    await ann.sync();
    expect((await ann.contacts.get(bob.id)).status).toBe('active');
  });

  test('03 §9: a set-up whose route was published unheard goes on where it stood', async () => {
    const store = new MemoryStore();
    const client = await relay.world.client({ store, prefer, retry: once });
    const accountKey = nodeRandom(32);
    relay.lose('account.route.publish', 1);
    await expect(client.setUp({ accountKey })).rejects.toMatchObject({ code: 'relay_unreachable' });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
    const account = await client.setUp({ accountKey });
    expect(await account.devices.list()).toHaveLength(1);
  });

  test('03 §11.1: a set-up with a key of its own making goes on with that key', async () => {
    const client = await relay.world.client({ prefer, retry: once });
    relay.lose('account.route.publish', 1);
    await expect(client.setUp()).rejects.toMatchObject({ code: 'relay_unreachable' });
    const account = await client.setUp();
    await account.devices.renew();
    expect(await account.devices.list()).toHaveLength(1);
  });

  test('02 §7: a profile whose answer was lost is read, not published again', async () => {
    const ann = await person({ prefer });
    relay.lose('profile.publish', 1);
    const asked = await countOf('profile.publish', async () => {
      await ann.profiles.publish({ nickname: 'Ann', public_discovery: false });
    });
    expect(asked).toBe(1);
    expect(await ann.profiles.resolve(ann.id)).toMatchObject({ nickname: 'Ann' });
  });
});

test('04 §12.1: a consent that is refused takes back what it began', async () => {
  const [ann, bob] = [await person(), await person()];
  await expect(ann.contacts.request(bob.id)).rejects.toMatchObject({ error: 'forbidden' });
  expect((await ann.contacts.get(bob.id)).status).not.toBe('waiting');
  const { text: invite } = await bob.contacts.invite({ lifetime: 60 });
  relay.lie('device.state.resolve', (state) => {
    relay.world.clock.advance(61);
    return state;
  });
  await expect(ann.contacts.join(invite)).rejects.toMatchObject({
    code: expect.stringMatching(/relay_(refused|misbehaviour)/),
  });
  expect((await ann.contacts.get(bob.id)).status).not.toBe('waiting');
  expect((await ann.status()).outbox).toBe(0);
});

describe('02 §12: following', () => {
  async function friends(options: Parameters<typeof person>[0] = {}) {
    const [ann, bob] = [await person(), await person(options)];
    await befriend(ann, bob);
    return { ann, bob };
  }

  /** Takes events until one fits; gives those before it too. */
  async function until(
    events: AsyncGenerator<AccountEvent>,
    fits: (event: AccountEvent) => boolean,
  ): Promise<AccountEvent[]> {
    const seen: AccountEvent[] = [];
    for (;;) {
      const { value, done } = await events.next();
      if (done) throw new Error('following ended');
      seen.push(value);
      if (fits(value)) return seen;
    }
  }

  const isMessage = (event: AccountEvent) => event.kind === 'message';

  test('messages come as they are sent', async () => {
    const { ann, bob } = await friends();
    const stop = new AbortController();
    const events = bob.follow({ signal: stop.signal });
    expect(await until(events, isConnected)).toEqual([
      { kind: 'connection', state: 'connecting' },
      { kind: 'connection', state: 'connected', transport: 'websocket' },
    ]);
    for (const text of ['one', 'two']) {
      const seen = until(events, isMessage);
      await ann.messages.send(bob.id, { text });
      expect(await seen).toMatchObject([
        { kind: 'message', message: { content: { body: { text } } } },
      ]);
    }
    stop.abort();
    expect(await events.next()).toEqual({ done: true, value: undefined });
  });

  test('after a broken connection it catches up', async () => {
    const { ann, bob } = await friends();
    const stop = new AbortController();
    const events = bob.follow({ signal: stop.signal });
    await until(events, isConnected);
    const next = until(events, isMessage);
    await ann.messages.send(bob.id, { text: 'before' });
    await next;
    const after = until(events, isMessage);
    relay.cut();
    await ann.messages.send(bob.id, { text: 'meanwhile' });
    const seen = await after;
    expect(seen.map((event) => ('state' in event ? event.state : event.kind))).toEqual([
      'disconnected',
      'connecting',
      'connected',
      'message',
    ]);
    stop.abort();
  });

  test('02 §4.3: a relay that ends each connection is left in peace for longer each time', async () => {
    const waits: number[] = [];
    const clock = {
      milliseconds: () => relay.world.clock.milliseconds(),
      sleep: async (wait: number, signal?: AbortSignal) => {
        if (wait > 30_000) return await relay.world.clock.sleep(wait, signal);
        // The attempts of one connection, which a cut may meet, wait for milliseconds here.
        if (wait >= 100) waits.push(wait);
      },
    };
    // The longest wait each time; everything else is random as ever.
    const random = (length: number) =>
      length === 4 ? new Uint8Array(4).fill(255) : nodeRandom(length);
    const bob = await person({ clock, random });
    relay.lie('message.timeline.sync', (page) => {
      setImmediate(() => relay.cut());
      return page;
    });
    const stop = new AbortController();
    const events = bob.follow({ signal: stop.signal });
    for (let lost = 0; lost < 4; lost += 1) {
      await until(events, isDisconnected);
    }
    expect(waits.slice(0, 3)).toEqual([500, 1_000, 2_000]);
    stop.abort();
  });

  test('without WebSocket it reads again and again', async () => {
    const { ann, bob } = await friends({ prefer: 'http' });
    const stop = new AbortController();
    const events = bob.follow({ signal: stop.signal, pollInterval: 10 });
    const seen = until(events, isMessage);
    await ann.messages.send(bob.id, { text: 'eventually' });
    expect(await seen).toMatchObject([
      { kind: 'connection', state: 'connecting' },
      { kind: 'connection', state: 'connected', transport: 'http' },
      { kind: 'message' },
    ]);
    stop.abort();
  });

  test('a device that was removed stops following', async () => {
    const accountKey = nodeRandom(32);
    const phone = await person({ accountKey, keepKey: true });
    const laptop = await person({ accountKey });
    const events = laptop.follow();
    await until(events, isConnected);
    const rest = until(events, () => false);
    await phone.devices.remove(laptop.deviceId);
    // The relay need not say so; the device notices at the latest after a minute of silence.
    relay.world.clock.advance(61);
    await expect(rest).rejects.toMatchObject({ error: 'device_unknown' });
  });
});
