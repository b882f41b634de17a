import type { ChannelPost } from '@posthouse/protocol';
import { beforeEach, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { Person } from '../fixtures/person.ts';
import { TwinRelays } from './twin-relays.ts';

const tables = ['channels', 'channel_posts', 'channel_events', 'channel_certificates'];
const relays = new TwinRelays();
let ann: Person;
let ben: Person;
let channel: TestChannel;

beforeEach(async () => {
  ann = await Person.register(relays, 'ann', ['phone', 'laptop']);
  ben = await Person.register(relays, 'ben');
  channel = await TestChannel.create(relays, ann, { moderators: [ben.account] });
});

async function publish(post: ChannelPost, by = ann, device = 'phone') {
  return await relays.callAlike('channel.post', post, { session: by.session(device) });
}

const codeOf = (ending: object) => ('code' in ending ? ending.code : 'ok');

test('06 §8.7: an append and a write accept the same posts and store the same rows', async () => {
  expect(await publish(channel.newPost())).toEqual({ result: { sequence: 1 } });
  relays.advance(10);
  expect(await publish(channel.newPost(undefined, { by: ben }), ben)).toMatchObject({ result: {} });
  const fromLaptop = channel.newPost(undefined, { device: 'laptop' });
  expect(await publish(fromLaptop, ann, 'laptop')).toMatchObject({ result: {} });
  expect(relays.appended).toBe(3);
  await channel.update({ name: 'News' });
  expect(await publish(channel.newPost())).toMatchObject({ result: {} });
  await channel.edit(1, { body: text('edited') });
  await relays.expectAlike(tables);
});

test('06 §8.7: a repeat gets the same answer and stores nothing, another post is refused', async () => {
  const post = channel.newPost(undefined, { by: ben });
  const first = await publish(post, ben);
  expect(await publish(post, ben)).toEqual(first);
  const { message_id } = post;
  const other = channel.newPost({ body: text('other'), message_id }, { by: ben });
  expect(await publish(other, ben)).toEqual({ code: 'state_conflict' });
  await channel.update({ moderators: [] });
  expect(await publish(post, ben)).toEqual(first);
  expect(codeOf(await publish(channel.newPost(undefined, { by: ben }), ben))).toBe('forbidden');
  await channel.close();
  expect(codeOf(await publish(channel.newPost()))).toBe('state_conflict');
  await relays.expectAlike(tables);
});

test('06 §8.7: the same post twice at once is stored once', async () => {
  const post = channel.newPost();
  const endings = await Promise.all([publish(post), publish(post), publish(post)]);
  expect(endings).toEqual(endings.map(() => ({ result: { sequence: 1 } })));
  await relays.expectAlike(tables);
});

test.each<[string, string, () => Promise<[string, unknown, object]>]>([
  [
    'the channel is closed',
    'state_conflict',
    async () => ['channel.close', channel.closure(), { session: ann.session() }],
  ],
  [
    'the account is no moderator any more',
    'forbidden',
    async () => [
      'channel.update',
      channel.nextDescriptor({ moderators: [] }),
      { session: ann.session() },
    ],
  ],
  [
    'the device is removed',
    'unauthorized',
    async () => [
      'device.state.publish',
      await ben.state({ devices: [] }),
      { session: ben.accountSession() },
    ],
  ],
])('06 §8.6: %s while the signature is verified', async (_what, code, arrange) => {
  await publish(channel.newPost(undefined, { by: ben }), ben);
  const post = channel.newPost(undefined, { by: ben });
  const [method, params, options] = await arrange();
  for (const relay of relays.both) {
    relay.meanwhile = async () => {
      await relay.call(method, params, options);
    };
  }
  expect(codeOf(await publish(post, ben))).toBe(code);
  await relays.expectAlike(tables);
});

test('06 §5.1: nothing is appended above the highest safe sequence', async () => {
  for (const relay of relays.both) {
    await relay.context.storage.write(`channel:${channel.channelId}`, (tx) =>
      tx.run(
        'UPDATE channels SET head = ? WHERE channel_id = ?',
        Number.MAX_SAFE_INTEGER - 1,
        channel.channelId,
      ),
    );
  }
  expect(codeOf(await publish(channel.newPost()))).toBe('ok');
  expect(codeOf(await publish(channel.newPost()))).toBe('state_conflict');
  await relays.expectAlike(tables);
});
