/** 06 §8.6: a caller without the right to write is refused before the channel is locked. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { Person } from '../fixtures/person.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';

let world: InProcessRelay;
let ann: Person;
let eve: Person;
let channel: TestChannel;

beforeEach(async () => {
  world = await InProcessRelay.start();
  ann = await Person.register(world, 'ann');
  eve = await Person.register(world, 'eve');
  channel = await TestChannel.create(world, ann);
});
afterEach(() => world[Symbol.asyncDispose]());

test('06 §8.6: an account that is neither owner nor moderator cannot post, edit or delete', async () => {
  const post = await channel.post();
  const by = eve;
  const calls = [
    ['channel.post', channel.newPost(undefined, { by })],
    ['channel.post.edit', channel.newEdit(post, { body: text('edited') }, { by })],
    ['channel.post.delete', channel.newDeletion(post, {}, { by })],
  ] as const;
  const before = await world.dump();
  const { storage } = world.context;
  const { write } = storage;
  const held: string[] = [];
  storage.write = async (aggregates, work) => {
    held.push(...[aggregates].flat());
    return (await write.call(storage, aggregates, work)) as never;
  };
  for (const [method, params] of calls) {
    const code = await world.codeOf(method, params, { session: eve.session() });
    expect([method, code]).toEqual([method, 'forbidden']);
  }
  storage.write = write;
  expect(held).toEqual([]);
  expect(await world.dump()).toEqual(before);
});
