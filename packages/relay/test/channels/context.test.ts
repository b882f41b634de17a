import { afterEach, beforeEach, expect, test } from 'vitest';
import { Person } from '../support/people.ts';
import { World } from '../support/world.ts';
import { refusal, TestChannel } from './support.ts';

let world: World;
beforeEach(async () => {
  world = await World.start();
});
afterEach(() => world[Symbol.asyncDispose]());

test('01 N6, 06 §8: $context is refused among parameters that are no signed object either', async () => {
  const ann = await Person.atHome(world, 'ann');
  const channel = await TestChannel.found(world, ann);
  const target_sequence = await channel.post();
  const { channelId: channel_id } = channel;
  const calls: readonly (readonly [string, object])[] = [
    ['channel.resolve', { channel_id }],
    ['channel.read', { channel_id }],
    ['channel.post.report', { channel_id, target_sequence, reason: 'spam' }],
    ['channel.close', channel.closure()],
  ];
  const session = ann.session();
  for (const [method, params] of calls) {
    const call = (given: object) => world.call(method, given, { session });
    for (const $context of ['x', null]) {
      expect(await refusal(world, () => call({ ...params, $context }))).toBe('bad_request');
    }
    await call(params);
  }
});
