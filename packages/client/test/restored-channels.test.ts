/** Channels whose host was restored, and what their people's programs do about it (06 §8.12). */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Account, AccountEvent } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { anotherDevice } from './groups/support.ts';
import { RestorableRelay } from './support/restorable-relay.ts';
import { SteeredTransport } from './support/steered-transport.ts';

let relay: RestorableRelay;
beforeAll(async () => {
  relay = await RestorableRelay.start({ host: { channels: true } });
});
afterAll(() => relay[Symbol.asyncDispose]());

let owner: Account;
let moderator: Account;
let follower: Account;
let id: string;
let backups = 0;

beforeEach(async () => {
  const { world } = relay;
  owner = await world.person({ prefer: 'http' });
  moderator = await world.person({ prefer: 'http' });
  follower = await world.person({ prefer: 'http' });
  const moderators = [moderator.id];
  const made = await owner.channels.create({ name: 'Old', moderators });
  id = made.id;
  for (const each of [moderator, follower]) await each.channels.follow(made.link);
});

/** Loses what is done after a backup, once everybody but the moderator has read it. */
async function lose(acts: () => Promise<unknown>): Promise<void> {
  backups += 1;
  const name = `channels ${backups}`;
  await relay.backUp(name);
  await acts();
  for (const each of [owner, follower]) await each.sync();
  await relay.restore(name);
}

const kinds = (events: readonly AccountEvent[]) =>
  events.flatMap((event) => ('channelId' in event && event.channelId === id ? [event.kind] : []));

const shown = async (account: Account) =>
  (await account.channels.listPosts(id)).map((post) => post.body?.text);

describe('06 §8.12: after a restored host lost a descriptor,', () => {
  const change = async () => {
    await owner.channels.update(id, { moderators: null });
    await owner.channels.update(id, { name: 'New' });
  };

  test('readers go by the newest that they have, and are told once', async () => {
    await lose(change);
    await moderator.channels.send(id, { text: 'of a removed moderator' });
    const events = kinds(await follower.sync());
    expect(events.filter((kind) => kind === 'channel-rollback')).toHaveLength(1);
    expect(events).toContain('channel-event-refused');
    expect(events).not.toContain('channel-failed');
    expect((await follower.channels.get(id)).descriptor).toMatchObject({
      name: 'New',
      revision: 2,
    });
    expect(await shown(follower)).toEqual([]);
    expect(kinds(await follower.sync())).toEqual([]);
    expect((await moderator.channels.get(id)).descriptor.name).toBe('Old');
  });

  test("the owner's program publishes it again, and no revision is used twice", async () => {
    await lose(change);
    await moderator.channels.send(id, { text: 'of a removed moderator' });
    expect(kinds(await owner.sync())).toContain('channel-rollback');
    expect(kinds(await owner.sync())).toEqual([]);
    for (const each of [moderator, follower]) {
      await each.sync();
      const { descriptor } = await each.channels.get(id);
      expect(descriptor).toMatchObject({ name: 'New', revision: 3 });
      expect(descriptor).not.toHaveProperty('moderators');
    }
    await expect(moderator.channels.send(id, { text: 'again' })).rejects.toThrow();
    await owner.channels.send(id, { text: 'after' });
    for (const each of [owner, follower]) await each.sync();
    for (const each of [owner, follower]) expect(await shown(each)).toEqual(['after']);
  });

  test('a change by the owner before that is made to the newest one', async () => {
    await lose(change);
    await owner.channels.update(id, { description: 'About' });
    await follower.sync();
    const { descriptor } = await follower.channels.get(id);
    expect(descriptor).toMatchObject({ name: 'New', description: 'About' });
    expect(descriptor).not.toHaveProperty('moderators');
    expect(descriptor.revision).toBeGreaterThan(2);
  });

  test('another device of the owner that changed it meanwhile is not overruled', async () => {
    const phone = await anotherDevice(relay.world, owner, { prefer: 'http' });
    await phone.channels.follow((await owner.channels.get(id)).link);
    await lose(change);
    relay.world.clock.advance(2);
    await phone.channels.update(id, { name: 'Of the phone' });
    expect(kinds(await owner.sync())).not.toContain('channel-failed');
    await phone.sync();
    expect((await phone.channels.get(id)).descriptor.name).toBe('Of the phone');
    await owner.channels.update(id, { name: 'Decided' });
    for (const each of [phone, follower]) {
      await each.sync();
      expect((await each.channels.get(id)).descriptor).toMatchObject({ name: 'Decided' });
    }
  });
});

test('06 §8.12: a channel whose closing was lost is closed again by its owner', async () => {
  await lose(() => owner.channels.close(id));
  await owner.sync();
  await moderator.sync();
  expect((await moderator.channels.get(id)).descriptor).toMatchObject({ status: 'closed' });
  await owner.sync();
});

test('06 §8.12: posts that were deleted after the backup are deleted again by the same account', async () => {
  await owner.channels.send(id, { text: 'one' });
  await moderator.channels.send(id, { text: 'two' });
  await owner.channels.send(id, { text: 'three' });
  for (const each of [owner, moderator]) await each.sync();
  const [one, two] = await owner.channels.listPosts(id);
  await lose(async () => {
    await owner.channels.delete(id, one?.sequence as number, { reason: 'wrong' });
    await moderator.channels.delete(id, two?.sequence as number);
    await moderator.sync();
  });
  expect(await shown(follower)).toEqual(['three']);
  const late = await relay.world.person({ prefer: 'http' });
  await late.channels.follow((await owner.channels.get(id)).link);
  await late.sync();
  expect(await shown(late)).toEqual(['one', 'two', 'three']);
  await owner.sync();
  await moderator.sync();
  for (const each of [late, follower]) {
    await each.sync();
    expect(await shown(each)).toEqual(['three']);
  }
});

test('06 §8.12: a session that ended only puts off that posts are deleted again', async () => {
  using inner = new NodeTransport({ ca: relay.world.ca });
  const transport = new SteeredTransport(inner);
  owner = await relay.world.person({ prefer: 'http', transport });
  const { id: news, link } = await owner.channels.create({ name: 'News' });
  await owner.channels.send(news, { text: 'one' });
  await owner.sync();
  const [one] = await owner.channels.listPosts(news);
  await lose(() => owner.channels.delete(news, one?.sequence as number));
  const body = new TextEncoder().encode('{"code":"unauthorized","message":"restarted"}');
  const unauthorized = { status: 401, contentType: 'application/json', body };
  transport.rules.set('channel.post.delete', async () => unauthorized);
  await owner.sync();
  expect(transport.bodies('channel.post.delete').length).toBeGreaterThan(1);
  transport.rules.clear();
  relay.world.clock.advance(3_601);
  await owner.sync();
  await follower.channels.follow(link);
  await follower.sync();
  expect(await follower.channels.listPosts(news)).toEqual([]);
});
