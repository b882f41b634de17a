/** Lists of messages, group messages and posts: ranges, order, what is shown; conversations of old stores. */
import { join } from 'node:path';
import type { ProjectedPost } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { putPost } from '../../src/channels/timeline/channel-entries.ts';
import { buildConversations } from '../../src/conversations/build-conversations.ts';
import { conversationRow } from '../../src/conversations/conversation-rows.ts';
import { markRead } from '../../src/conversations/mark-read.ts';
import type { AccountCore } from '../../src/core.ts';
import { listGroupMessages, putGroupEntry } from '../../src/groups/timeline/group-entries.ts';
import type { GroupMessageRow } from '../../src/groups/timeline/group-entry.ts';
import { type Account, MemoryStore, type MessageContent, type Store } from '../../src/index.ts';
import { addMessage } from '../../src/messages/message-rows.ts';
import { SqliteStore } from '../../src/node.ts';
import { club } from '../groups/support.ts';
import { RawSender } from '../support/raw-sender.ts';
import { befriend, network, relayWithClients } from '../support/relay-with-clients.ts';
import { asEarlierVersion, CountedStore } from './support.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

let ann: Account;
let annsStore: Store;
let carol: Account;
beforeAll(async () => {
  annsStore = new MemoryStore();
  ann = await world.person({ store: annsStore });
  carol = await world.person();
});

let files = 0;
const sqliteFile = () => {
  files += 1;
  return SqliteStore.open(join(world.folder, `lists-${files}.sqlite`));
};

const textOf = ({ body }: MessageContent) => body?.text ?? '';

describe.each<[string, () => Store]>([
  ['memory', () => new MemoryStore()],
  ['a SQLite file', sqliteFile],
])('%s', (_, open) => {
  let store: Store;
  let bob: Account;
  let groupId: string;
  let channelId: string;
  beforeAll(async () => {
    store = open();
    bob = await world.person({ store });
    for (const peer of [ann, carol]) await befriend(peer, bob);
    // A refused record, tasks and contact requests lie between the messages.
    await using raw = new RawSender(world, annsStore);
    const refused = { $type: network.type('message.direct'), body: { text: 1 } };
    for (const text of ['one', 'two', 'three', 'four', 'five']) {
      await ann.messages.send(bob.id, { text });
      await raw.send(bob.id, refused as never, { authorization: await raw.grantOf(bob.id) });
      await carol.messages.send(bob.id, { text: `c-${text}` });
    }
    await bob.messages.send(bob.id, { text: 'note' });
    await bob.sync();
    groupId = await club(ann, [bob]);
    const { id, link } = await ann.channels.create({ name: 'News' });
    channelId = id;
    await bob.channels.follow(link);
    for (const text of ['one', 'two', 'three', 'four', 'five']) {
      await ann.groups.send(groupId, { text });
      await ann.groups.setNickname(groupId, `Ann ${text}`);
      const { sequence } = await ann.channels.send(id, { text });
      await ann.channels.send(id, { text: 'gone' });
      await ann.channels.delete(id, sequence + 1);
    }
    await bob.sync();
  });
  afterAll(() => store[Symbol.asyncDispose]());

  interface Listed {
    readonly position: number;
    readonly text: string;
  }
  const lists = {
    messages: async (options: object): Promise<Listed[]> =>
      (await bob.messages.list({ with: ann.id, ...options })).map((row) => ({
        position: row.order,
        text: textOf(row),
      })),
    'group messages': async (options: object): Promise<Listed[]> =>
      (await bob.groups.listMessages(groupId, options)).map((row) => ({
        position: row.sequence,
        text: textOf(row),
      })),
    posts: async (options: object): Promise<Listed[]> =>
      (await bob.channels.listPosts(channelId, options)).map((row) => ({
        position: row.sequence,
        text: textOf(row),
      })),
  };

  describe.each(Object.entries(lists))('04 §18, 05 §17.2, 06 §10.1: of %s', (_what, list) => {
    const texts = async (options: object) => (await list(options)).map(({ text }) => text);

    test('the limit counts what is returned, from either end', async () => {
      const all = ['one', 'two', 'three', 'four', 'five'];
      expect(await texts({})).toEqual(all);
      expect(await texts({ newestFirst: true })).toEqual(all.toReversed());
      for (const limit of [0, 1, 4, 5, 6]) {
        expect(await texts({ limit })).toEqual(all.slice(0, limit));
        expect(await texts({ limit, newestFirst: true })).toEqual(all.toReversed().slice(0, limit));
      }
    });

    test('`after` and `before` exclude their positions, together and alone', async () => {
      const positions = (await list({})).map(({ position }) => position);
      const [one, two, , four, five] = positions as [number, number, number, number, number];
      expect(await texts({ after: two })).toEqual(['three', 'four', 'five']);
      expect(await texts({ before: four })).toEqual(['one', 'two', 'three']);
      expect(await texts({ after: one, before: four })).toEqual(['two', 'three']);
      expect(await texts({ after: one, before: four, limit: 1 })).toEqual(['two']);
      const newest = { after: one, before: four, limit: 1, newestFirst: true };
      expect(await texts(newest)).toEqual(['three']);
      expect(await texts({ after: five })).toEqual([]);
      expect(await texts({ before: one })).toEqual([]);
      expect(await texts({ after: four, before: two })).toEqual([]);
      expect(await texts({ after: -1, before: five + 1 })).toHaveLength(5);
      expect(await texts({ before: 0 })).toEqual([]);
    });

    test.each([
      { limit: -1 },
      { limit: 1.5 },
      { after: Number.NaN },
      { before: 0.5 },
      { limit: Number.POSITIVE_INFINITY },
    ])('%o is refused', async (options) => {
      await expect(list(options)).rejects.toMatchObject({ code: 'invalid_input' });
    });
  });

  test('messages of every conversation are listed in order of arrival, without hidden ones', async () => {
    const texts = (await bob.messages.list()).map(textOf);
    expect(texts).toHaveLength(11);
    expect(texts.slice(-3)).toEqual(['c-four', 'five', 'c-five']);
    const newest = await bob.messages.list({ limit: 3, newestFirst: true });
    expect(newest.map(textOf)).toEqual(texts.slice(-3).toReversed());
    expect((await bob.messages.list({ limit: 1 })).map(textOf)).toEqual([texts[0]]);
    expect((await bob.messages.list({ with: bob.id })).map(textOf)).toEqual(['note']);
    expect((await bob.messages.list({ with: carol.id, limit: 1 })).map(textOf)).toEqual(['c-one']);
    for (const id of ['', groupId, `${ann.id}/0000000000000001`, 'neo:unknown']) {
      expect(await bob.messages.list({ with: id })).toEqual([]);
    }
  });

  test('04 §8, §9, 05 §14.1, 06 §7.1: what a message says is typed, and its object is in `content`', async () => {
    const [first] = await bob.messages.list({ with: ann.id, limit: 1 });
    const said = { body: { content_type: 'text/plain', text: 'one' } };
    expect(first).toMatchObject({ ...said, content: said });
    expect(first).not.toHaveProperty('replyTo');
    const replyTo = { from: first!.from, messageId: first!.messageId };
    const note = await bob.messages.send(bob.id, { text: 'a note' });
    expect(note.body?.text).toBe('a note');
    const answer = await bob.messages.send(ann.id, { text: 'yes', replyTo });
    expect(answer).toMatchObject({ replyTo, content: { reply_to: { from: ann.id } } });
    expect(await bob.messages.get(answer)).toEqual(answer);
    const [grouped] = await bob.groups.listMessages(groupId, { limit: 1 });
    expect(grouped).toMatchObject({ ...said, content: said });
    await bob.groups.send(groupId, { text: 'yes', replyTo: grouped!.sequence });
    const events = await bob.groups.sync(groupId);
    const replied = { body: { text: 'yes' }, replyTo: grouped!.sequence };
    const messages = events.filter(({ kind }) => kind === 'group-message');
    expect(messages).toMatchObject([{ kind: 'group-message', message: replied }]);
    expect(await bob.groups.listEntries(groupId, { limit: 1, newestFirst: true })).toMatchObject([
      replied,
    ]);
    const asked = await ann.groups.send(groupId, { text: 'and you?', replyTo: grouped!.sequence });
    const again = { body: { text: 'and you?' }, replyTo: grouped!.sequence };
    const later = (await bob.sync()).filter(({ kind }) => kind === 'group-message');
    expect(later.at(-1)).toMatchObject({ message: { ...again, sequence: asked.sequence } });
    const [post] = await bob.channels.listPosts(channelId, { limit: 1 });
    expect(post).toMatchObject({ ...said, content: said });
  });

  test('a list reads one range and its rows, however many are stored', async () => {
    const counted = new CountedStore(store);
    const again = await (await world.client({ store: counted })).account();
    await again.messages.list({ limit: 0 });
    const cost = async (list: () => Promise<unknown>) => {
      counted.reads = { lists: 0, entries: 0 };
      await list();
      return counted.reads;
    };
    const options = { limit: 3, newestFirst: true };
    for (const list of [
      () => again.messages.list(options),
      () => again.messages.list({ ...options, with: ann.id }),
      () => again.groups.listMessages(groupId, options),
      () => again.channels.listPosts(channelId, options),
    ]) {
      expect(await cost(list)).toEqual({ lists: 1, entries: 6 });
    }
  });

  test('a store of an earlier version gets its lists in steps that survive a crash', async () => {
    const before = await Promise.all(Object.values(lists).map((list) => list({})));
    const all = await bob.messages.list();
    await asEarlierVersion(store);
    // Written between the update and the first list.
    const updated = new CountedStore(store);
    const device = await (await world.client({ store: updated })).account();
    await ann.messages.send(bob.id, { text: 'six' });
    await device.sync();
    for (let writes = 0; ; writes += 1) {
      updated.writesLeft = writes;
      const listed = await device.messages.list().catch((error: Error) => error.message);
      if (listed !== 'crash') break;
    }
    updated.writesLeft = Number.POSITIVE_INFINITY;
    expect((await device.messages.list()).map(textOf)).toEqual([...all.map(textOf), 'six']);
    bob = device;
    const [messages, ...hosted] = await Promise.all(Object.values(lists).map((list) => list({})));
    expect(messages?.slice(0, -1)).toEqual(before[0]);
    expect(hosted).toEqual(before.slice(1));
    const conversations = await device.conversations.list();
    expect(conversations).toHaveLength(5);
    // What was stored before counts as read.
    expect(conversations.map(({ unread }) => unread).toSorted()).toEqual([0, 0, 0, 0, 1]);
    expect(conversations[0]).toMatchObject({ id: ann.id, unread: 1 });
  });
});

test('a store of an earlier version with more messages than one step takes', async () => {
  const store = new MemoryStore();
  const dan = await world.person({ store });
  await store.write(async (tx) => {
    for (let index = 1; index <= 1_201; index += 1) {
      await addMessage({ account: dan.id, clock: world.clock }, tx, {
        message_id: `msg_${index}`,
        from: index % 2 === 0 ? ann.id : dan.id,
        from_device_id: 'dev',
        to: index % 2 === 0 ? dan.id : ann.id,
        created_at: index,
        digest: '',
        content: { $type: network.type(index % 3 === 0 ? 'contact.grant' : 'message.direct') },
        outcome: 'applied',
      });
    }
  });
  await asEarlierVersion(store);
  const counted = new CountedStore(store);
  const again = await (await world.client({ store: counted })).account();
  // A crash after the first step leaves it, and the next list goes on after it.
  counted.writesLeft = 1;
  await expect(again.messages.list({ with: ann.id })).rejects.toThrow('crash');
  counted.writesLeft = Number.POSITIVE_INFINITY;
  const placed = await store.read((tx) => tx.list('shown-messages'));
  expect(placed).not.toEqual([]);
  const listed = await again.messages.list({ with: ann.id });
  expect(counted.mostPlaced).toBeLessThanOrEqual(500);
  expect(listed.map(({ createdAt }) => createdAt)).toEqual(
    Array.from({ length: 1_201 }, (_, index) => index + 1).filter((at) => at % 3 !== 0),
  );
  const [row] = await again.messages.list({ limit: 1, newestFirst: true });
  expect(row?.createdAt).toBe(1_201);
});

/** A group's message as its host claims it. */
const groupRow = (sequence: number, { id = `msg_${sequence}`, at = 1 } = {}): GroupMessageRow => ({
  ...{ kind: 'message', group_id: 'grp_x', sequence, epoch: 0, accepted_at: at, created_at: at },
  ...{ message_id: id, from: 'neo:eve', from_device_id: 'dev', outcome: 'applied' },
  content: { $type: network.type('group.message.content'), body: { text: id } },
});

const postOf = (sequence: number, { id = `msg_${sequence}`, at = 1 } = {}) => ({
  channelId: 'chan_x',
  post: {
    ...{ sequence, acceptedAt: at, account: 'neo:eve', state: {} },
    post: { message_id: id },
  } as unknown as ProjectedPost,
});

const [inGroup, inChannel] = [
  { kind: 'group', id: 'grp_x' },
  { kind: 'channel', id: 'chan_x' },
] as const;

test('a store that began with conversations has none to build: its first list writes nothing', async () => {
  const stores = [new CountedStore(new MemoryStore()), new CountedStore(new MemoryStore())];
  const [first, second] = stores as [CountedStore, CountedStore];
  const phone = await world.person({ store: first });
  const client = await world.client({ store: second });
  const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
  const laptop = await client.completeDevice(approval, {
    accountPublicKey: phone.publicKey,
  });
  await phone.messages.send(phone.id, { text: 'a note' });
  await laptop.sync();
  for (const store of stores) store.writesLeft = 0;
  for (const account of [phone, laptop]) {
    expect((await account.messages.list()).map(textOf)).toEqual(['a note']);
    expect(await account.conversations.list()).toMatchObject([{ lastMessage: { body: {} } }]);
  }
});

test('05 §17.2, 06 §10.1: after an update, what arrives is unread however old it is; older pages are read', async () => {
  const store = new MemoryStore();
  const core = { account: 'neo:me', store, clock: world.clock } as unknown as AccountCore;
  const now = Math.floor(world.clock.milliseconds() / 1_000);
  await store.write(async (tx) => {
    await tx.put('groups', 'grp_x', JSON.stringify({ group_id: 'grp_x', standing: 'member' }));
    await tx.put(
      'channels',
      'chan_x',
      JSON.stringify({ channel_id: 'chan_x', standing: 'followed' }),
    );
    await putGroupEntry(core, tx, groupRow(5, { at: now - 9_000 }));
    await putPost(core, tx, postOf(5, { at: now - 9_000 }));
  });
  await asEarlierVersion(store);
  await buildConversations(core);
  await store.write(async (tx) => {
    await putGroupEntry(core, tx, groupRow(6, { at: now - 8_000 }));
    await putPost(core, tx, postOf(6, { at: now - 8_000 }));
    await putPost(core, tx, postOf(4, { at: now - 9_500 }));
  });
  for (const key of [inGroup, inChannel]) {
    expect(await store.read((tx) => conversationRow(tx, key))).toMatchObject({ unread: 1 });
  }
});

test('05 §17.2, 06 §10.1: a host that gives one sequence to two messages in turn has each counted once', async () => {
  const store = new MemoryStore();
  const core = { account: 'neo:me', store, clock: world.clock } as unknown as AccountCore;
  await buildConversations(core);
  for (const id of ['msg_a', 'msg_b', 'msg_a', 'msg_b', 'msg_a']) {
    await store.write((tx) => putGroupEntry(core, tx, groupRow(5, { id })));
    await store.write((tx) => putPost(core, tx, postOf(5, { id })));
  }
  const listed = await store.read((tx) => listGroupMessages(tx, 'grp_x'));
  expect(listed.map(({ message_id }) => message_id)).toEqual(['msg_a', 'msg_b']);
  for (const key of [inGroup, inChannel]) {
    const unread = async () => (await store.read((tx) => conversationRow(tx, key)))?.unread;
    expect(await unread()).toBe(2);
    await markRead(core, key, undefined);
    expect(await unread()).toBe(0);
  }
  await store.write((tx) => putGroupEntry(core, tx, groupRow(5, { id: 'msg_b' })));
  expect(await store.read((tx) => conversationRow(tx, inGroup))).toMatchObject({ unread: 0 });
});
