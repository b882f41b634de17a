/** Conversations as a person sees them: order, titles, unread messages, marks. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Account, type Conversation, MemoryStore, type Store } from '../../src/index.ts';
import { SqliteStore } from '../../src/node.ts';
import { anotherDevice, club, exchange } from '../groups/support.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { befriend } from '../support/relay-with-clients.ts';
import { CountedStore } from './support.ts';

let relay: LyingRelay;
let ann: Account;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true, channels: true } });
  ann = await relay.world.person({ prefer: 'http' });
});
afterAll(() => relay[Symbol.asyncDispose]());

let files = 0;
const sqliteFile = () => {
  files += 1;
  return SqliteStore.open(join(relay.world.folder, `conversations-${files}.sqlite`));
};

const brief = ({ kind, id, unread, lastMessage }: Conversation) => ({
  kind,
  id,
  unread,
  last: lastMessage?.body?.text,
});

describe.each<[string, () => Store]>([
  ['memory', () => new MemoryStore()],
  ['a SQLite file', sqliteFile],
])('%s', (_, open) => {
  let store: Store;
  let bob: Account;
  beforeEach(async () => {
    relay.behave();
    store = open();
    bob = await relay.world.person({ store, prefer: 'http' });
    await befriend(ann, bob);
    // Hosts say seconds: what happens in one of them has no order.
    relay.world.clock.advance(2);
  });

  const conversation = async (id: string, kind: Conversation['kind'] = 'person') =>
    await bob.conversations.get({ kind, id });

  test('a list has persons, groups and channels, the newest message first', async () => {
    expect(await bob.conversations.list()).toEqual([]);
    const groupId = await club(ann, [bob], 'Chess club');
    relay.world.clock.advance(2);
    const { id: channelId, link } = await ann.channels.create({ name: 'News' });
    await bob.channels.follow(link);
    // Joined and followed, without a message.
    const [channel, group] = await bob.conversations.list();
    expect(group).toMatchObject({ kind: 'group', id: groupId, title: 'Chess club', unread: 0 });
    expect(channel).toMatchObject({ kind: 'channel', id: channelId, title: 'News', unread: 0 });
    expect(group).not.toHaveProperty('lastMessage');
    for (const say of [
      () => ann.channels.send(channelId, { text: 'a post' }),
      () => bob.messages.send(bob.id, { text: 'a note' }),
      () => ann.messages.send(bob.id, { text: 'a message' }),
      () => ann.groups.send(groupId, { text: 'to all' }),
    ]) {
      relay.world.clock.advance(2);
      await say();
    }
    await bob.sync();
    const listed = await bob.conversations.list();
    expect(listed.map(brief)).toEqual([
      { kind: 'group', id: groupId, unread: 1, last: 'to all' },
      { kind: 'person', id: ann.id, unread: 1, last: 'a message' },
      { kind: 'person', id: bob.id, unread: 0, last: 'a note' },
      { kind: 'channel', id: channelId, unread: 1, last: 'a post' },
    ]);
    // Page by page, also if another one moves up meanwhile.
    const first = await bob.conversations.list({ limit: 2 });
    expect(first).toEqual(listed.slice(0, 2));
    relay.world.clock.advance(2);
    await ann.channels.send(channelId, { text: 'another' });
    await ann.messages.send(bob.id, { text: 'again' });
    await bob.sync();
    const rest = await bob.conversations.list({ limit: 2, before: first.at(-1)! });
    expect(rest.map(({ id }) => id)).toEqual([bob.id]);
    expect(await bob.conversations.list({ limit: 0 })).toEqual([]);
    await expect(bob.conversations.list({ limit: -1 })).rejects.toMatchObject({
      code: 'invalid_input',
    });
  });

  test('03 §7, §17.2: a title is the local name, else the known nickname, and never invented', async () => {
    await ann.profiles.publish({ nickname: 'Annie', public_discovery: false });
    await ann.messages.send(bob.id, { text: 'hello' });
    await bob.sync();
    expect(await conversation(ann.id)).not.toHaveProperty('title');
    await bob.profiles.resolve(ann.id);
    expect(await conversation(ann.id)).toMatchObject({ title: 'Annie' });
    await bob.contacts.rename(ann.id, 'Ann from work');
    expect(await conversation(ann.id)).toMatchObject({ title: 'Ann from work' });
  });

  test('a mark reads everything through a position; what arrives later is unread', async () => {
    for (const text of ['one', 'two', 'three']) await ann.messages.send(bob.id, { text });
    await bob.messages.send(ann.id, { text: 'mine' });
    await bob.sync();
    const [one, two] = (await bob.messages.list({ with: ann.id })).filter(
      ({ from }) => from === ann.id,
    );
    expect(await conversation(ann.id)).toMatchObject({ unread: 3 });
    await bob.conversations.markRead({ kind: 'person', id: ann.id }, { through: two!.order });
    expect(await conversation(ann.id)).toMatchObject({ unread: 1, readThrough: two!.order });
    // A mark before another one takes nothing back.
    await bob.conversations.markRead({ kind: 'person', id: ann.id }, { through: one!.order });
    expect(await conversation(ann.id)).toMatchObject({ unread: 1, readThrough: two!.order });
    await bob.conversations.markRead({ kind: 'person', id: ann.id });
    expect(await conversation(ann.id)).toMatchObject({ unread: 0 });
    await bob.conversations.markRead({ kind: 'person', id: ann.id }, { through: 1e9 });
    await ann.messages.send(bob.id, { text: 'four' });
    await bob.sync();
    expect(await conversation(ann.id)).toMatchObject({ unread: 1 });
    for (const through of [-1, 1.5]) {
      const marked = bob.conversations.markRead({ kind: 'person', id: ann.id }, { through });
      await expect(marked).rejects.toMatchObject({ code: 'invalid_input' });
    }
    await bob.conversations.markRead({ kind: 'person', id: 'neo:unknown' });
    expect(await conversation('neo:unknown')).toBeUndefined();
  });

  test('what another own device sent is not unread, and reads nothing', async () => {
    const tablet = await anotherDevice(relay.world, bob, { prefer: 'http' });
    await exchange(bob, tablet);
    await ann.messages.send(bob.id, { text: 'one' });
    await tablet.sync();
    await tablet.messages.send(ann.id, { text: 'from the tablet' });
    await bob.sync();
    expect(brief((await conversation(ann.id))!)).toMatchObject({
      unread: 1,
      last: 'from the tablet',
    });
  });

  test('06 §7.3: a deleted post is not unread, and the post before it is the last', async () => {
    const { id, link } = await ann.channels.create({ name: 'News' });
    await ann.channels.send(id, { text: 'before following' });
    relay.world.clock.advance(2);
    await bob.channels.follow(link);
    expect(brief((await conversation(id, 'channel'))!)).toMatchObject({
      unread: 0,
      last: 'before following',
    });
    await ann.channels.send(id, { text: 'one' });
    const { sequence } = await ann.channels.send(id, { text: 'two' });
    await bob.sync();
    await ann.channels.edit(id, sequence, { text: 'two, edited' });
    await bob.sync();
    expect(brief((await conversation(id, 'channel'))!)).toMatchObject({
      unread: 2,
      last: 'two, edited',
    });
    relay.world.clock.advance(2);
    await bob.messages.send(bob.id, { text: 'a note' });
    relay.world.clock.advance(2);
    const last = await ann.channels.send(id, { text: 'deleted soon' });
    await bob.sync();
    const newest = async () => (await bob.conversations.list())[0]?.kind;
    expect(await newest()).toBe('channel');
    for (const each of [last.sequence, sequence]) await ann.channels.delete(id, each);
    await bob.sync();
    expect(await newest()).toBe('person');
    expect(brief((await conversation(id, 'channel'))!)).toMatchObject({ unread: 1, last: 'one' });
    await bob.channels.unfollow(id);
    expect(await conversation(id, 'channel')).toBeUndefined();
    await bob.channels.follow(link);
    relay.world.clock.advance(2);
    await ann.channels.send(id, { text: 'three' });
    await bob.sync();
    expect(brief((await conversation(id, 'channel'))!)).toMatchObject({ last: 'three' });
  });

  test('a group that ended stays in the list until it is forgotten, and comes back with its messages', async () => {
    const id = await club(ann, [bob]);
    await ann.groups.send(id, { text: 'hello' });
    await bob.sync();
    await bob.groups.leave(id);
    expect(brief((await conversation(id, 'group'))!)).toMatchObject({ last: 'hello' });
    await bob.groups.forget(id);
    expect(await bob.conversations.list()).toEqual([]);
    const { text } = await ann.groups.invite(id);
    await bob.groups.join(text);
    expect(await conversation(id, 'group')).toBeUndefined();
    await ann.groups.approve(id, [bob.id]);
    await bob.sync();
    expect((await bob.conversations.list()).map(brief)).toMatchObject([{ id, last: 'hello' }]);
  });

  test('without its last message, a conversation returns to the place of the one before', async () => {
    await ann.messages.send(bob.id, { text: 'first' });
    await bob.sync();
    relay.world.clock.advance(2);
    await bob.messages.send(bob.id, { text: 'a note' });
    relay.overHttp.set('device.state.resolve', (response) => response.destroy());
    relay.world.clock.advance(3_700);
    const cancelled = await bob.messages.post(ann.id, { text: 'too early' });
    const order = async () => (await bob.conversations.list()).map(({ id }) => id);
    expect(await order()).toEqual([ann.id, bob.id]);
    await bob.messages.cancel(cancelled);
    expect(await order()).toEqual([bob.id, ann.id]);
  });

  test('what is not sent yet waits', async () => {
    await bob.messages.send(ann.id, { text: 'sent' });
    expect(await conversation(ann.id)).toMatchObject({ waiting: 0 });
    relay.overHttp.set('message.send', (response) => response.destroy());
    await expect(bob.messages.send(ann.id, { text: 'lost' })).rejects.toThrow();
    expect(await conversation(ann.id)).toMatchObject({ waiting: 1 });
    relay.behave();
    await bob.sync();
    expect(await conversation(ann.id)).toMatchObject({ waiting: 0 });
    relay.overHttp.set('device.state.resolve', (response) => response.destroy());
    relay.world.clock.advance(3_700);
    const cancelled = await bob.messages.post(ann.id, { text: 'too early' });
    expect(await conversation(ann.id)).toMatchObject({ waiting: 1, lastMessage: cancelled });
    await bob.messages.cancel(cancelled);
    expect(brief((await conversation(ann.id))!)).toMatchObject({ last: 'lost' });
    expect(await conversation(ann.id)).toMatchObject({ waiting: 0 });
    // Without a message left, a person is not listed.
    const only = await bob.messages.post(bob.id, { text: 'a note' });
    await bob.messages.cancel(only);
    expect(await conversation(bob.id)).toBeUndefined();
  });

  test('a list reads one range, and a few rows of each conversation', async () => {
    for (let index = 0; index < 3; index += 1) await bob.messages.send(bob.id, { text: 'a note' });
    const counted = new CountedStore(store);
    const again = await (await relay.world.client({ store: counted })).account();
    await again.conversations.list();
    const cost = async () => {
      counted.reads = { lists: 0, entries: 0 };
      await again.conversations.list({ limit: 1 });
      return counted.reads;
    };
    const before = await cost();
    for (let index = 0; index < 20; index += 1) await bob.messages.send(bob.id, { text: 'a note' });
    expect(await cost()).toEqual(before);
    expect(before.entries).toBeLessThan(10);
  });
});
