/**
 * A relay whose storage was put back to an earlier state, as an operator does it who restores a copy
 * of its folder: it gives sequences a second time, to other records. No record that it has then may
 * be missed, and what it lost is reported once.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { accountSigner } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { changeConversation } from '../src/conversations/conversation-rows.ts';
import {
  type Account,
  type AccountEvent,
  type Conversation,
  MemoryStore,
  type Store,
  type Transport,
} from '../src/index.ts';
import { NodeTransport, SqliteStore } from '../src/node.ts';
import { club, groupTexts } from './groups/support.ts';
import { Person } from './support/courier.ts';
import type { Json } from './support/hostile-answers.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, network, texts } from './support/relay-with-clients.ts';

let relay: LyingRelay;
let ann: Account;
let bob: Account;
let store: Store;
beforeAll(async () => {
  relay = await LyingRelay.start();
  ann = await relay.world.person({ prefer: 'http' });
});
beforeEach(async () => {
  store = new MemoryStore();
  bob = await relay.world.person({ store, prefer: 'http' });
  await befriend(ann, bob);
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const method = 'message.timeline.sync';
const folder = (name: string) => join(relay.world.folder, name);

/** Stops the relay, works on its folder, and starts it again. */
async function whileStopped(work: () => void): Promise<void> {
  await relay.world.stopRelay();
  work();
  await relay.world.startRelay();
}

async function backUp(name = 'backup'): Promise<void> {
  await whileStopped(() => cpSync(folder('relay'), folder(name), { recursive: true, force: true }));
}

/** @param raised by how much the restored sequences are raised, if at all */
async function restore(name = 'backup', raised = 0): Promise<void> {
  await whileStopped(() => {
    rmSync(folder('relay'), { recursive: true });
    cpSync(folder(name), folder('relay'), { recursive: true });
    if (raised === 0) return;
    using database = new DatabaseSync(join(folder('relay'), 'relay.sqlite'));
    database.exec(`UPDATE timeline_heads SET head = head + ${raised}`);
  });
}

async function send(...lines: string[]): Promise<void> {
  for (const text of lines) await ann.messages.send(bob.id, { text });
}

const gaps = (events: readonly AccountEvent[]) =>
  events.flatMap((event) => (event.kind === 'timeline-gap' ? [event.cause] : []));

describe('04 §18.3: after a relay was put back to a copy of its folder', () => {
  beforeEach(async () => {
    await send('one');
    await bob.sync();
    await backUp();
    await send('two', 'three', 'four');
    await bob.sync();
  });

  test.each([
    ['below the position', 1],
    ['at the position', 3],
    ['above the position', 4],
  ])('everything sent later is read, with the new head %s', async (_, count) => {
    await restore();
    const later = ['a', 'b', 'c', 'd'].slice(0, count);
    await send(...later);
    const events = await bob.sync();
    expect(gaps(events)).toEqual(['rollback']);
    expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(count);
    expect(await texts(bob)).toEqual(['one', 'two', 'three', 'four', ...later]);
    await send('at last');
    expect((await bob.sync()).map(({ kind }) => kind)).toEqual(['message']);
  });

  test('everything sent later is read if its sequences were raised', async () => {
    await restore('backup', 2 ** 32);
    await send('a', 'b', 'c', 'd');
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    expect(await texts(bob)).toEqual(['one', 'two', 'three', 'four', 'a', 'b', 'c', 'd']);
    expect((await bob.status()).position).toBeGreaterThan(2 ** 32);
  });

  test('with nothing new, the loss is reported at once, and once', async () => {
    await restore();
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    expect(await bob.sync()).toEqual([]);
    expect((await bob.status()).hasGap).toBe(true);
  });

  test('a program that started again does not report it a second time', async () => {
    await restore();
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    const again = await (await relay.world.client({ store, prefer: 'http' })).account();
    expect(await again.sync()).toEqual([]);
    expect((await again.status()).hasGap).toBe(true);
  });

  test('an interrupted second reading goes on where it stopped', async () => {
    await restore();
    await send('a', 'b', 'c');
    relay.ask(method, (params) => ({ ...params, limit: 1 }));
    const reading = { events: 1, pages: 1, time: 0, grace: 30_000 };
    const seen: AccountEvent[] = [];
    for (let rounds = 0; rounds < 20; rounds += 1) {
      const client = await relay.world.client({ store, prefer: 'http', reading });
      seen.push(...(await (await client.account()).sync()));
    }
    expect(gaps(seen)).toEqual(['rollback']);
    expect(seen.filter(({ kind }) => kind === 'message')).toHaveLength(3);
    expect(await texts(bob)).toEqual(['one', 'two', 'three', 'four', 'a', 'b', 'c']);
  });

  test('a second time is reported again', async () => {
    await restore();
    await send('a');
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    await send('b');
    await bob.sync();
    await restore();
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    expect(await texts(bob)).toEqual(['one', 'two', 'three', 'four', 'a', 'b']);
  });

  test('going back and forth is reported once, and nothing is applied twice', async () => {
    await backUp('later');
    const seen: AccountEvent[] = [];
    for (const name of ['backup', 'later', 'backup', 'later']) {
      await restore(name);
      seen.push(...(await bob.sync()));
    }
    expect(seen.map(({ kind }) => kind)).toEqual(['timeline-gap']);
    expect(await texts(bob)).toEqual(['one', 'two', 'three', 'four']);
  });

  test('the notes of courier say what happened and what to do', async () => {
    const eve = new Person(relay.world, 'eve');
    await eve.run(['setup', ...eve.network]);
    await eve.run(['send', 'me', 'kept']);
    await eve.run(['inbox']);
    await backUp('courier');
    await eve.run(['send', 'me', 'lost by the relay']);
    await eve.run(['inbox']);
    await restore('courier');
    const { exit, out, error } = await eve.run(['inbox']);
    expect(exit).toBe(0);
    expect(out).toMatch(/kept\n.*lost by the relay\n$/);
    expect(error).toMatch(/the relay lost messages .* your other devices or with its sender\n$/);
    expect((await eve.run(['inbox'])).error).toBe('');
    expect(await eve.json('status')).toMatchObject({ gap: true });
  });
});

test('04 §18.3: a restore between two pages of one reading', async () => {
  await bob.sync();
  await send('one');
  await backUp();
  await send('two', 'three');
  let pages = 0;
  const { ca } = relay.world;
  using transport = new NodeTransport({ ca });
  const restoring: Transport = {
    request: async (request) => {
      const isPage = JSON.stringify(request).includes('limit=100');
      if (request.url.includes('/message/timeline/sync') && isPage && ++pages === 2) {
        await restore();
        await send('a', 'b', 'c');
      }
      return await transport.request(request);
    },
  };
  const client = await relay.world.client({ store, transport: restoring });
  relay.ask(method, (params) => ({ ...params, limit: Math.min(Number(params.limit), 2) }));
  const again = await client.account();
  const events = await again.sync();
  expect(gaps(events)).toEqual(['rollback']);
  expect(await texts(again)).toEqual(['one', 'two', 'a', 'b', 'c']);
});

test('04 §18.3: a program that follows its account reads again by itself', async () => {
  await send('one');
  await bob.sync();
  await backUp();
  await send('two');
  const following = await (await relay.world.client({ store })).account();
  const stop = new AbortController();
  const seen: string[] = [];
  let restored: Promise<void> | undefined;
  const restoreAndSend = async () => {
    await restore();
    await send('a', 'b');
    relay.world.clock.advance(60);
  };
  for await (const event of following.follow({ signal: stop.signal })) {
    if (event.kind === 'timeline-gap') seen.push(event.cause);
    if (event.kind === 'message') seen.push(event.message.body?.text ?? '');
    if (seen.at(-1) === 'two') restored ??= restoreAndSend();
    if (seen.at(-1) === 'b') stop.abort();
  }
  await restored;
  expect(seen).toEqual(['two', 'rollback', 'a', 'b']);
});

describe('04 §18.1: a record at sequence 2^53 - 1', () => {
  const highest = Number.MAX_SAFE_INTEGER;
  /** Changes the last of several records: one record alone is only compared. */
  const withLast = (sequence: number) => (page: Json) => ({
    ...page,
    items:
      page.items.length < 2 ? page.items : page.items.with(-1, { ...page.items.at(-1), sequence }),
  });

  test.each([
    ['2^53 - 1', highest],
    ['more than 2^40 above the last one', 2 ** 40 + 100],
  ])('is refused: %s', async (_, sequence) => {
    await send('one', 'two');
    const { position } = await bob.status();
    relay.lie(method, withLast(sequence));
    await expect(bob.sync()).rejects.toMatchObject({ reason: 'sequence_jump' });
    expect((await bob.status()).position).toBe(position);
    relay.behave();
    expect(gaps(await bob.sync())).toEqual([]);
    expect(await texts(bob)).toEqual(['one', 'two']);
  });

  test('steps of 2^40 are accepted, and do not keep later records from being read', async () => {
    await send('one', 'two');
    const { position } = await bob.status();
    relay.lie(method, withLast(position + 1 + 2 ** 40));
    await bob.sync();
    relay.behave();
    await send('three');
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    expect(await texts(bob)).toEqual(['one', 'two', 'three']);
  });

  test('a store that is stuck there from before reads on', async () => {
    await send('one');
    await store.write(async (tx) => {
      const row = JSON.stringify({ position: highest, gap: false });
      await tx.put('timelines', relay.world.relay.relayId, row);
    });
    expect(gaps(await bob.sync())).toEqual(['rollback']);
    expect(await texts(bob)).toEqual(['one']);
  });
});

test('04 §18.3: a relay that refuses every position is read from the beginning once', async () => {
  await send('one', 'two');
  await bob.sync();
  const asked = relay.asked.get(method) ?? 0;
  relay.ask(method, ({ after }) => ({
    after: Number(after) >= 0 ? Number.MAX_SAFE_INTEGER : after,
    limit: 1,
  }));
  await expect(bob.sync()).rejects.toMatchObject({ reason: 'timeline_rollback' });
  expect((relay.asked.get(method) ?? 0) - asked).toBeLessThan(5);
  relay.behave();
  await bob.sync();
  expect(await texts(bob)).toEqual(['one', 'two']);
});

describe('03 §4: a relay that has an older device state than its account', () => {
  test('gets the newer one from a device that has no account key', async () => {
    const accountKey = nodeRandom(32);
    const carol = await relay.world.person({ accountKey, prefer: 'http' });
    const phone = await (await relay.world.client({ prefer: 'http' })).setUp({ accountKey });
    await carol.sync();
    await backUp();
    await carol.devices.remove(phone.deviceId, {
      accountKey: accountSigner(network, accountKey),
      force: true,
    });
    await carol.sync();
    const newest = relay.honest.get('device.state.resolve').revision;
    await restore();
    await carol.messages.send(carol.id, { text: 'to myself' });
    await carol.sync();
    expect(await texts(carol)).toEqual(['to myself']);
    expect(relay.honest.get('device.state.resolve').revision).toBe(newest);
    await expect(phone.sync()).rejects.toMatchObject({ code: 'relay_refused' });
  });
});

test('04 §15.2: a message that a relay accepted and lost is submitted again, and arrives once', async () => {
  await bob.sync();
  await ann.sync();
  await backUp();
  relay.lie('message.send', (status) => ({ ...status, status: 'delivering' }));
  await send('accepted');
  relay.behave();
  await restore();
  await ann.sync();
  await ann.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(['accepted']);
  expect((await ann.messages.list()).at(-1)).toMatchObject({ status: 'target_accepted' });
});

test('04 §18.3: a store in a file keeps what it knows of the last record', async () => {
  await using file = SqliteStore.open(join(relay.world.folder, 'rollback.sqlite'));
  const carol = await relay.world.person({ store: file, prefer: 'http' });
  await carol.messages.send(carol.id, { text: 'one' });
  await carol.sync();
  await backUp();
  await carol.messages.send(carol.id, { text: 'two' });
  await carol.sync();
  await restore();
  const again = await (await relay.world.client({ store: file, prefer: 'http' })).account();
  await again.messages.send(carol.id, { text: 'three' });
  expect(gaps(await again.sync())).toEqual(['rollback']);
  expect(await texts(again)).toEqual(['one', 'two', 'three']);
});

describe('05 §12.8, 06 §8.11: after the host was put back,', () => {
  interface Hosted {
    readonly id: string;
    /** Writes as the owner. */
    write(...lines: string[]): Promise<void>;
    /** Texts that Bob has. */
    texts(): Promise<string[]>;
  }

  async function group(): Promise<Hosted> {
    const id = await club(ann, [bob]);
    return {
      id,
      write: async (...lines) => {
        for (const text of lines) await ann.groups.send(id, { text });
      },
      texts: () => groupTexts(bob, id),
    };
  }

  async function channel(): Promise<Hosted> {
    const { id, link } = await ann.channels.create({ name: 'News' });
    await bob.channels.follow(link, { from: 'creation' });
    return {
      id,
      write: async (...lines) => {
        for (const text of lines) await ann.channels.send(id, { text });
      },
      texts: async () => (await bob.channels.listPosts(id)).map(({ body }) => body?.text ?? ''),
    };
  }

  type GroupConversation = Extract<Conversation, { kind: 'group' }>;

  const kinds = (events: readonly AccountEvent[], id: string) =>
    events
      .filter((event) => JSON.stringify(event).includes(id))
      .map(({ kind }) => kind)
      .filter((kind) => /^(?:group|channel)-/.test(kind));

  describe.each([
    ['group', group],
    ['channel', channel],
  ] as const)('of a %s', (what, make) => {
    const fresh = what === 'group' ? 'group-message' : 'channel-post';

    test('with a lower head: new entries are read, and it is reported once', async () => {
      const hosted = await make();
      await hosted.write('one', 'two');
      await bob.sync();
      await backUp();
      await hosted.write('three', 'four', 'five');
      await bob.sync();
      expect(await hosted.texts()).toHaveLength(5);
      await restore();
      expect(kinds(await bob.sync(), hosted.id)).toEqual([`${what}-rollback`]);
      expect(kinds(await bob.sync(), hosted.id)).toEqual([]);
      await hosted.write('a', 'b', 'c', 'd');
      expect(kinds(await bob.sync(), hosted.id)).toEqual([fresh, fresh, fresh, fresh]);
      const all = ['a', 'b', 'c', 'd', 'five', 'four', 'one', 'three', 'two'];
      expect((await hosted.texts()).toSorted()).toEqual(all);
      // Each is unread once, those at sequences that were given twice too.
      expect(await bob.conversations.get({ kind: what, id: hosted.id })).toMatchObject({
        unread: 9,
      });
      await restore();
      expect(kinds(await bob.sync(), hosted.id)).toEqual([`${what}-rollback`]);
    });

    test('with a head that is as high again: the timeline shows it, and new entries are read', async () => {
      const hosted = await make();
      await hosted.write('one', 'two');
      await bob.sync();
      await backUp();
      await hosted.write('three', 'four', 'five');
      await send('by mail');
      await bob.sync();
      const key = { kind: what, id: hosted.id };
      // Another device of Bob marked what there was as read.
      const { lastMessage } = (await bob.conversations.get(key)) as GroupConversation;
      await bob.conversations.markRead(key);
      const readElsewhere = { through: lastMessage?.sequence as number };
      await store.write((tx) => changeConversation(tx, key, (row) => ({ ...row, readElsewhere })));
      expect(await bob.conversations.get(key)).toMatchObject({ unread: 0 });
      await restore();
      await hosted.write('a', 'b', 'c', 'd');
      const events = await bob.sync();
      expect(gaps(events)).toEqual(['rollback']);
      expect(kinds(events, hosted.id)).toEqual([fresh, fresh, fresh, fresh]);
      const all = ['a', 'b', 'c', 'd', 'five', 'four', 'one', 'three', 'two'];
      expect((await hosted.texts()).toSorted()).toEqual(all);
      expect(await bob.conversations.get(key)).toMatchObject({ unread: 4 });
    });

    test('an entry at sequence 2^53 - 1 is refused, and later ones are read', async () => {
      const hosted = await make();
      await bob.sync();
      await hosted.write('one');
      relay.lie(what === 'group' ? 'group.sync' : 'channel.read', (page) => ({
        ...page,
        events: page.events.map((event: object) => ({
          ...event,
          sequence: Number.MAX_SAFE_INTEGER,
        })),
      }));
      expect(kinds(await bob.sync(), hosted.id)).toEqual([`${what}-failed`]);
      relay.behave();
      await hosted.write('two');
      await bob.sync();
      expect(await hosted.texts()).toEqual(['one', 'two']);
    });
  });

  test('a host that only pretends it brings back no deleted post, and removes none', async () => {
    const { id, write, texts: shown } = await channel();
    await write('deleted', 'kept');
    await bob.sync();
    const [post] = await bob.channels.listPosts(id);
    await bob.channels.preview({ channelId: id, relayId: relay.world.relay.relayId }, { after: 0 });
    const older = relay.honest.get('channel.read');
    await ann.channels.delete(id, post?.sequence as number);
    await bob.sync();
    relay.ask('channel.read', (params) =>
      Number(params.after) > 0 ? { ...params, after: Number.MAX_SAFE_INTEGER } : params,
    );
    relay.lie('channel.read', () => older);
    expect(kinds(await bob.sync(), id)).toEqual(['channel-rollback']);
    expect(await shown()).toEqual(['kept']);
  });
});
