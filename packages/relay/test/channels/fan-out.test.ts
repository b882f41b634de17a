/** One post to many connections, over real sockets; some of them never read. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { DoorGround, nextHint } from '../support/door.ts';
import type { Person } from '../support/people.ts';
import { FrontDoor } from '../support/relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';
import { TestChannel, text } from './support.ts';

const patience = { timeout: 30_000, interval: 10 };
/** Milliseconds that thousands of connections may take on a machine with much else to do. */
const busy = 300_000;
/** Connections that are opened at once. */
const together = 20;

let door: FrontDoor;
let ground: DoorGround;
let ann: Person;
/** The followers, all of them. */
let ben: Person;
/** Somebody with other things to do. */
let eve: Person;
let channel: TestChannel;

const start = async (limits: { readonly sendBufferBytes?: number } = {}) => {
  door = await FrontDoor.start({ host: { channels: true }, limits });
  ground = new DoorGround(door);
  ann = await ground.person('ann');
  ben = await ground.person('ben');
  eve = await ground.person('eve');
  channel = await TestChannel.found(ground, ann);
};
afterEach(() => door[Symbol.asyncDispose]());

const followers = async (count: number, ...channels: readonly TestChannel[]) => {
  const all: WebSocketClient[] = [];
  while (all.length < count) {
    const some = Math.min(together, count - all.length);
    const opened = Array.from({ length: some }, () => ground.following(ben, channels));
    all.push(...(await Promise.all(opened)));
  }
  return all;
};
/** The last head a connection hears of, counted up to one that must come. */
const hearsOf = async (socket: WebSocketClient, head: number) => {
  const heads: number[] = [];
  while (heads.at(-1) !== head) heads.push((await nextHint(socket))[1] as number);
  return heads;
};
const ascending = (heads: readonly number[]) =>
  heads.every((head, index) => index === 0 || head > (heads[index - 1] as number));

describe('thousands of connections follow, some never read', () => {
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

  test('everybody who reads hears of the last post, and calls of others are answered', {
    timeout: busy,
  }, async () => {
    const other = await ground.following(eve, []);
    const calls = Promise.all(
      Array.from({ length: 50 }, () =>
        other.call('channel.read', { channel_id: channel.channelId }),
      ),
    );
    for (let count = 0; count < posts; count += 1) await channel.post();
    for (const heads of await Promise.all(reading.map((socket) => hearsOf(socket, posts)))) {
      expect(ascending(heads)).toBe(true);
    }
    for (const answer of await calls) expect(answer).toHaveProperty('result.events');
    // Whoever sleeps keeps its connection, and hears of the last post when it wakes up.
    expect(door.relay.context.metrics.value('connections')).toBe(readers + sleepers + 1);
    for (const { socket } of sleeping) socket.resume();
    for (const heads of await Promise.all(sleeping.map((socket) => hearsOf(socket, posts)))) {
      expect(ascending(heads)).toBe(true);
    }
  });

  test('a call is answered while the others are told', { timeout: busy }, async () => {
    const other = await ground.following(eve, []);
    const order: string[] = [];
    const told = reading.map(async (socket, index) => {
      await hearsOf(socket, 1);
      order.push('told');
      if (index > 0) return;
      await other.call('relay.info');
      order.push('answered');
    });
    await channel.post();
    await Promise.all(told);
    expect(order.filter((each) => each === 'told')).toHaveLength(readers);
    expect(order.at(-1)).toBe('told');
    expect(order).toContain('answered');
  });
});

describe('02 §12.3: a connection that takes nothing any more', () => {
  /** More than the network of this machine takes for one connection, in pages. */
  const pages = 24;
  const posts = 30;

  /** Connections whose network is full of answers; hints go to the relay's own buffer from now on. */
  const filled = async (count: number, ...channels: readonly TestChannel[]) => {
    const long = await TestChannel.found(ground, ann);
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
    const { metrics } = door.relay.context;
    await vi.waitFor(() => {
      expect(metrics.value('calls', answered)).toBe(count * pages);
    }, patience);
    return all;
  };

  test('has one hint on its way and one that waits, however much is posted', async () => {
    await start({ sendBufferBytes: 67_108_864 });
    const quick = await ground.following(eve, [channel]);
    const stuck = await filled(3, channel);
    for (let head = 1; head <= posts; head += 1) {
      await channel.post();
      expect(await nextHint(quick)).toEqual(['timeline', head]);
    }
    for (const socket of stuck) {
      socket.socket.resume();
      expect(await hearsOf(socket, posts)).toEqual([1, posts]);
    }
  });

  test('has no more than that of each of many channels', async () => {
    await start({ sendBufferBytes: 67_108_864 });
    const others = [channel, await TestChannel.found(ground, ann)];
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
    // The hint of the first post of one was under way when the other had its own.
    expect([...heads.values()].map((heard) => heard.length).sort()).toEqual([1, 2]);
  });

  test('is ended where its buffer is over the limit, and nobody else is', async () => {
    await start({ sendBufferBytes: 1_048_576 });
    const { metrics } = door.relay.context;
    const quick = await ground.following(eve, [channel]);
    const asleep = await ground.following(ben, [channel]);
    asleep.socket.pause();
    const ended = () => metrics.value('connections_ended', { reason: 'peer reads too slowly' });
    const [stuck] = (await filled(1, channel)) as [WebSocketClient];
    for (let head = 1; head <= posts; head += 1) {
      await channel.post();
      expect(await nextHint(quick)).toEqual(['timeline', head]);
    }
    expect(ended()).toBe(1);
    stuck.socket.resume();
    await stuck.closed;
    asleep.socket.resume();
    expect((await hearsOf(asleep, posts)).at(-1)).toBe(posts);
  });
});
