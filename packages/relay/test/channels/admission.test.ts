/** 06 §8.6: a caller without the right to write is refused before the channel is locked. */
import { beforeEach, expect, test } from 'vitest';
import { heldDuring } from '../fixtures/before-write.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const eve = relay.person('eve');
let channel: TestChannel;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
});

test('06 §8.6: an account that is neither owner nor moderator cannot post, edit or delete', async () => {
  const post = await channel.post();
  const by = eve;
  const calls = [
    ['channel.post', channel.newPost(undefined, { by })],
    ['channel.post.edit', channel.newEdit(post, { body: text('edited') }, { by })],
    ['channel.post.delete', channel.newDeletion(post, {}, { by })],
  ] as const;
  const before = await relay.dump();
  const held = await heldDuring(relay.context.storage, async () => {
    for (const [method, params] of calls) {
      const code = await relay.codeOf(method, params, { session: eve.session() });
      expect([method, code]).toEqual([method, 'forbidden']);
    }
  });
  expect(held).toEqual([]);
  expect(await relay.dump()).toEqual(before);
});
