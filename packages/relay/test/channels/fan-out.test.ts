/** One post to many connections over real sockets, some of which never read. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RelayLimits } from '../../src/limits.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { nextHint } from '../fixtures/hints.ts';
import type { Person } from '../fixtures/person.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

const patience = { timeout: 30_000, interval: 10 };
/** Milliseconds that thousands of connections may take on a busy machine. */
const busy = 300_000;
/** Connections that are opened concurrently. */
const concurrency = 20;

let relay: ServedRelay;
let ann: Person;
/** The account of all followers. */
let ben: Person;
/** An account that makes other calls. */
let eve: Person;
let channel: TestChannel;

const most = 1_073_741_824;
const unlimitedWaiting = {
  sendBufferBytes: 67_108_864,
  ...{ waitingBytesPerAccount: most, waitingBytes: most },
};
const start = async (limits: Partial<RelayLimits> = {}) => {
  relay = await ServedRelay.start({ host: { channels: true }, limits });
  ann = await relay.register('ann');
  ben = await relay.register('ben');
  eve = await relay.register('eve');
  channel = await TestChannel.create(relay, ann);
};
afterEach(() => relay[Symbol.asyncDispose]());

const followers = async (count: number, ...channels: readonly TestChannel[]) => {
  const all: WebSocketClient[] = [];
  while (all.length < count) {
    const batch = Math.min(concurrency, count - all.length);
    const opened = Array.from({ length: batch }, () => relay.withChannels(ben, channels));
    all.push(...(await Promise.all(opened)));
  }
  return all;
};
/** Reads the hints of a connection up to the one with this head; returns their heads. */
const hintsUpTo = async (socket: WebSocketClient, head: number) => {
  const heads: number[] = [];
  while (heads.at(-1) !== head) heads.push((await nextHint(socket))[1] as number);
  return heads;
};
const ascending = (heads: readonly number[]) =>
  heads.every((head, index) => index === 0 || head > (heads[index - 1] as number));

describe('thousands of connections follow a channel, and some never read', () => {
  const readers = 1_750;
  const sleepers = 150;
  const posts = 10;
  let reading: WebSocketClient[];
  let sleeping: WebSocketClient[];

  beforeEach(async () => {
    await start();
    reading = await followers(readers, channel);
    sleeping = await followers(sleepers, channel);
    for (const { socket } of sleeping) socket.pause();
  }, busy);

  test('every reading connection gets the last hint, and calls of others are answered', {
    timeout: busy,
  }, async () => {
    const other = await relay.withChannels(eve, []);
    const calls = Promise.all(
      Array.from({ length: 50 }, () =>
        other.call('channel.read', { channel_id: channel.channelId }),
      ),
    );
    for (let count = 0; count < posts; count += 1) await channel.post();
    for (const heads of await Promise.all(reading.map((socket) => hintsUpTo(socket, posts)))) {
      expect(ascending(heads)).toBe(true);
    }
    for (const answer of await calls) expect(answer).toHaveProperty('result.events');
    // A connection that does not read stays open and gets the last hint when it reads again.
    expect(relay.server.context.metrics.value('connections')).toBe(readers + sleepers + 1);
    for (const { socket } of sleeping) socket.resume();
    for (const heads of await Promise.all(sleeping.map((socket) => hintsUpTo(socket, posts)))) {
      expect(ascending(heads)).toBe(true);
    }
  });

  test('a call is answered while hints are sent', { timeout: busy }, async () => {
    const other = await relay.withChannels(eve, []);
    const order: string[] = [];
    const notified = reading.map(async (socket, index) => {
      await hintsUpTo(socket, 1);
      order.push('notified');
      if (index > 0) return;
      await other.call('relay.info');
      order.push('answered');
    });
    await channel.post();
    await Promise.all(notified);
    expect(order.filter((each) => each === 'notified')).toHaveLength(readers);
    expect(order.at(-1)).toBe('notified');
    expect(order).toContain('answered');
  });
});

describe('02 §12.3: a connection whose client stopped reading', () => {
  /** Pages that are more than the network buffers of one connection hold. */
  const pages = 24;
  const posts = 30;

  /** Opens connections whose network buffers are full: hints wait in the relay's own buffer. */
  const filled = async (count: number, ...channels: readonly TestChannel[]) => {
    const long = await TestChannel.create(relay, ann);
    for (let post = 0; post < 14; post += 1) await long.post({ body: text('x'.repeat(60_000)) });
    const all = await followers(count, ...channels);
    const answered = { method: 'channel.read', transport: 'websocket', code: 'ok' };
    for (const { socket } of all) {
      socket.pause();
      for (let id = 1; id <= pages; id += 1) {
        const params = { channel_id: long.channelId };
        const request = { jsonrpc: '2.0', id: `page ${id}`, method: 'channel.read', params };
        socket.send(JSON.stringify(request));
      }
    }
    const { metrics } = relay.server.context;
    await vi.waitFor(() => {
      expect(metrics.value('calls', answered)).toBe(count * pages);
    }, patience);
    return all;
  };

  test('has at most one hint in flight and one waiting, for any number of posts', async () => {
    await start(unlimitedWaiting);
    const quick = await relay.withChannels(eve, [channel]);
    const stuck = await filled(3, channel);
    for (let head = 1; head <= posts; head += 1) {
      await channel.post();
      expect(await nextHint(quick)).toEqual(['timeline', head]);
    }
    for (const socket of stuck) {
      socket.socket.resume();
      expect(await hintsUpTo(socket, posts)).toEqual([1, posts]);
    }
  });

  test('has at most one hint in flight in all and one waiting for each channel', async () => {
    await start(unlimitedWaiting);
    const others = [channel, await TestChannel.create(relay, ann)];
    const [stuck] = (await filled(1, ...others)) as [WebSocketClient];
    for (let post = 0; post < posts; post += 1) {
      for (const each of others) await each.post();
    }
    stuck.socket.resume();
    const heads = new Map(others.map(({ channelId }) => [channelId, [] as number[]]));
    while ([...heads.values()].some((heard) => heard.at(-1) !== posts)) {
      const { params } = await stuck.notification();
      heads.get(params.channel_id as string)?.push(params.head as number);
    }
    // The first hint of one channel was in flight when the other channel had its first.
    expect([...heads.values()].map((heard) => heard.length).sort()).toEqual([1, 2]);
  });

  test('is closed if its buffer is over the limit, and no other connection is', async () => {
    await start({ sendBufferBytes: 1_048_576 });
    const { metrics } = relay.server.context;
    const quick = await relay.withChannels(eve, [channel]);
    const asleep = await relay.withChannels(ben, [channel]);
    asleep.socket.pause();
    const ended = () => metrics.value('connections_ended', { reason: 'peer reads too slowly' });
    const stuck = await relay.withChannels(ben, [channel]);
    stuck.socket.pause();
    // Requests wait for room; refusals of what is no request do not.
    const nonsense = JSON.stringify({ id: 'x'.repeat(100) });
    let head = 0;
    while (head < posts || ended() === 0) {
      head += 1;
      for (let count = 0; count < 1_000; count += 1) stuck.socket.send(nonsense);
      await channel.post();
      expect(await nextHint(quick)).toEqual(['timeline', head]);
    }
    expect(ended()).toBe(1);
    stuck.socket.resume();
    await stuck.closed;
    asleep.socket.resume();
    expect((await hintsUpTo(asleep, head)).at(-1)).toBe(head);
  });
});
