/** 06 §8: channels that the operator closed here are as if they were not hosted. */
import { beforeEach, expect, test } from 'vitest';
import { blockChannel, unblock } from '../../src/blocks/index.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
let channel: TestChannel;
let other: TestChannel;
let post: number;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
  other = await TestChannel.create(relay, ann);
  post = await channel.post({ body: text('stolen goods') });
});

const close = async (endsAt?: number) => {
  const { clock, context } = relay;
  const { limits, storage } = context;
  const block = { id: channel.channelId, reason: '', endsAt };
  const isNew = await blockChannel(storage, block, { now: clock.now(), limits });
  await context.blocks.refresh();
  return isNew;
};

/** A connection that subscribes without a socket. */
const connection = (ids: string[], person = ben) => ({
  bound: { session: person.session(), dead: false },
  bind: () => {},
  end: () => {},
  setSubscriptions: async (_: unknown, confirm: () => Promise<ReadonlyMap<string, number>>) => {
    ids.push(...(await confirm()).keys());
  },
});

test('no method knows the channel, the owner included; others are as they were', async () => {
  const { channelId: channel_id } = channel;
  const calls: [string, unknown, typeof ann][] = [
    ['channel.resolve', { channel_id }, ben],
    ['channel.read', { channel_id }, ben],
    ['channel.post', channel.newPost({ body: text('more') }), ann],
    ['channel.post.report', { channel_id, target_sequence: post, reason: 'spam' }, ben],
    ['channel.create', channel.descriptor, ann],
  ];
  await close();
  for (const [method, params, by] of calls) {
    const code = await relay.codeOf(method, params, { session: by.session() });
    expect([method, code]).toEqual([method, 'not_found']);
  }
  const subscribed: string[] = [];
  await expect(
    relay.call(
      'channel.subscribe',
      { channel_ids: [channel_id, other.channelId] },
      { connection: connection(subscribed) as never },
    ),
  ).rejects.toMatchObject({ code: 'not_found', data: { channel_ids: [channel_id] } });
  expect(subscribed).toEqual([]);
  await other.post();
  expect(await readWhole(relay, other)).toHaveLength(2);
});

test('it comes back whole when the block ends, by itself or removed', async () => {
  const before = await readWhole(relay, channel);
  await close(relay.clock.now() + 100);
  relay.clock.advance(100);
  expect(await readWhole(relay, channel)).toEqual(before);
  expect(await close()).toBe(true);
  const { storage } = relay.context;
  const block = { kind: 'channel', id: channel.channelId } as const;
  expect(await unblock(storage, block, relay.clock.now())).toBe(true);
  await relay.context.blocks.refresh();
  expect(await readWhole(relay, channel)).toEqual(before);
  await channel.post();
});
