/** Channels when programs end, answers are lost and other devices write meanwhile. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, MemoryStore } from '../../src/index.ts';
import { SqliteStore } from '../../src/node.ts';
import { anotherDevice } from '../groups/support.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { block, RestartableClient, unreachable } from '../support/restartable-client.ts';
import { WatchedStore } from '../support/watched-store.ts';
import { places, postTexts } from './support.ts';

let relay: LyingRelay;
let folder: string;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { channels: true } });
  folder = mkdtempSync(join(tmpdir(), 'posthouse-channels-'));
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Loses a revision and the answers to every later request about it. */
function blockUpdate(): void {
  block(relay, 'channel.update');
  relay.when.set('channel.update', () => block(relay, 'channel.resolve'));
}

async function waiting({ account }: RestartableClient): Promise<number> {
  return (await account.status()).outbox;
}

/** Ann's channel with a post, and its timeline at the host as another account reads it. */
async function channel(
  ann: RestartableClient,
): Promise<{ id: string; link: string; sequence: number }> {
  const { id, link } = await ann.account.channels.create({ name: 'News' });
  const { sequence } = await ann.account.channels.send(id, { text: 'first' });
  await ann.account.sync();
  return { id, link, sequence };
}

async function atHost(account: Account, link: string): Promise<string[]> {
  const { entries } = await account.channels.preview(link);
  return entries.flatMap((entry) => (entry.kind === 'post' ? [entry.body?.text ?? ''] : []));
}

test.each(['memory', 'a SQLite file'])(
  '06 §10: with %s, a reader that restarts at each step continues at its position',
  async (kind) => {
    const store =
      kind === 'memory' ? new MemoryStore() : SqliteStore.open(join(folder, 'bob.sqlite'));
    const [ann, bob] = [
      await RestartableClient.begin(relay),
      await RestartableClient.begin(relay, store),
    ];
    const { id, link, sequence } = await channel(ann);
    await bob.account.channels.follow(link);
    await ann.account.channels.edit(id, sequence, { text: 'first, edited' });
    await (await bob.again()).sync();
    await ann.account.channels.send(id, { text: 'second' });
    await bob.again();
    relay.asked.clear();
    await bob.account.sync();
    // The new events in one page, without the earlier timeline.
    expect(relay.asked.get('channel.read')).toBe(1);
    expect(relay.asked.get('channel.resolve')).toBeUndefined();
    expect(await postTexts(await bob.again(), id)).toEqual(['first, edited', 'second']);
    expect(await bob.account.sync()).toEqual([]);
  },
);

describe('06 §10.4: lost answers', () => {
  test('a creation that was lost, or whose answer was lost, is completed by the next sync', async () => {
    const neverSent = () => block(relay, 'channel.create', 'channel.resolve');
    const lost = () => {
      relay.lose('channel.create', 1);
      block(relay, 'channel.resolve');
    };
    for (const [lose, sent] of [[neverSent, 1] as const, [lost, 0] as const]) {
      const ann = await RestartableClient.begin(relay);
      lose();
      const creating = ann.account.channels.create({ name: 'News' });
      await expect(creating).rejects.toMatchObject(unreachable);
      relay.behave();
      const [made] = await ann.account.channels.list();
      expect(made).toMatchObject({ followState: 'creating', role: 'owner' });
      relay.asked.clear();
      await (await ann.again()).sync();
      // Resolved first, and sent again only if the host does not have it.
      expect(relay.asked.get('channel.create') ?? 0).toBe(sent);
      expect(await ann.account.channels.list()).toMatchObject([
        { id: made?.id, followState: 'followed', span: { first: 0, position: 0 } },
      ]);
      expect(await waiting(ann)).toBe(0);
    }
  });

  test('a creation of which only the answer was lost succeeds at once', async () => {
    const ann = await RestartableClient.begin(relay);
    relay.lose('channel.create', 1);
    const { followState } = await ann.account.channels.create({ name: 'News' });
    expect(followState).toBe('followed');
  });

  test('06 §8.7: a post is sent again unchanged and exists once', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id, link } = await channel(ann);
    relay.lose('channel.post', 1);
    const posting = ann.account.channels.send(id, { text: 'lost and found' });
    await expect(posting).rejects.toMatchObject(unreachable);
    expect(await waiting(ann)).toBe(1);
    await (await ann.again()).sync();
    block(relay, 'channel.post');
    const blocked = ann.account.channels.send(id, { text: 'kept' });
    await expect(blocked).rejects.toMatchObject(unreachable);
    relay.behave();
    await (await ann.again()).sync();
    expect(await waiting(ann)).toBe(0);
    expect(await atHost(ann.account, link)).toEqual(['first', 'lost and found', 'kept']);
    expect(await postTexts(ann.account, id)).toEqual(['first', 'lost and found', 'kept']);
  });

  test('06 §7.4: a post accepted before the channel closed is not told as rejected', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id } = await channel(ann);
    relay.lose('channel.post', 1);
    const posting = ann.account.channels.send(id, { text: 'in time' });
    await expect(posting).rejects.toMatchObject(unreachable);
    await ann.account.channels.close(id);
    const events = await (await ann.again()).sync();
    expect(events.filter((event) => 'error' in event)).toEqual([]);
    expect(await postTexts(ann.account, id)).toEqual(['first', 'in time']);
  });

  test('06 §10.4: a post that waits is sent before a later closing', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id, link } = await channel(ann);
    block(relay, 'channel.post');
    const posting = ann.account.channels.send(id, { text: 'just in time' });
    await expect(posting).rejects.toMatchObject(unreachable);
    relay.behave();
    await ann.account.channels.close(id);
    expect(await atHost(ann.account, link)).toContain('just in time');
    expect(await waiting(ann)).toBe(0);
  });

  test('a post after the closing is told as rejected', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id } = await channel(ann);
    block(relay, 'channel.post');
    const posting = ann.account.channels.send(id, { text: 'too late' });
    await expect(posting).rejects.toMatchObject(unreachable);
    relay.behave();
    refuse('channel.post', 'state_conflict');
    expect(await (await ann.again()).sync()).toContainEqual(
      expect.objectContaining({
        kind: 'message-status',
        conversation: { kind: 'channel', id },
        status: 'rejected',
      }),
    );
    expect(await waiting(ann)).toBe(0);
  });

  test('an edit or a deletion of which only the answer was lost succeeds at once and exists once', async () => {
    const patient = { prefer: 'http', retry: { attempts: 4, base: 1, cap: 1 } } as const;
    const ann = await RestartableClient.begin(relay, new MemoryStore(), patient);
    const { id, sequence } = await channel(ann);
    relay.asked.clear();
    relay.lose('channel.post.edit', 1);
    await ann.account.channels.edit(id, sequence, { text: 'edited' });
    relay.lose('channel.post.delete', 1);
    await ann.account.channels.delete(id, sequence);
    expect(relay.asked.get('channel.post.edit')).toBe(1);
    expect(relay.asked.get('channel.post.delete')).toBe(1);
    await ann.account.sync();
    expect(await places(ann.account, id)).toEqual(['change 0', 'gap 2-2', 'deletion 3']);
    expect(await waiting(ann)).toBe(0);
  });

  test.each(['lost', 'never sent'])(
    'an edit whose answer and timeline read failed (%s) is settled by the next sync',
    async (fate) => {
      const ann = await RestartableClient.begin(relay);
      const { id, link, sequence } = await channel(ann);
      block(relay, 'channel.read', ...(fate === 'lost' ? [] : ['channel.post.edit']));
      if (fate === 'lost') relay.lose('channel.post.edit', 1);
      const editing = ann.account.channels.edit(id, sequence, { text: 'edited' });
      await expect(editing).rejects.toMatchObject(unreachable);
      relay.behave();
      relay.asked.clear();
      await (await ann.again()).sync();
      expect(relay.asked.get('channel.post.edit') ?? 0).toBe(fate === 'lost' ? 0 : 1);
      expect(await waiting(ann)).toBe(0);
      expect(await atHost(ann.account, link)).toEqual(['edited']);
    },
  );

  test('a lost edit is not repeated over another account’s edit', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const { id, link, sequence } = await channel(ann);
    await ann.account.channels.update(id, { moderators: [bob.account.id] });
    await bob.account.channels.follow(link);
    for (const rival of [
      () => bob.account.channels.edit(id, sequence, { text: 'by Bob' }),
      () => bob.account.channels.delete(id, sequence),
    ]) {
      block(relay, 'channel.post.edit', 'channel.read');
      const editing = ann.account.channels.edit(id, sequence, { text: 'by Ann' });
      await expect(editing).rejects.toMatchObject(unreachable);
      relay.behave();
      await rival();
      expect(await (await ann.again()).sync()).toContainEqual(
        expect.objectContaining({ kind: 'message-status', write: 'edit', status: 'failed' }),
      );
      expect(await atHost(bob.account, link)).not.toContain('by Ann');
    }
    expect(await waiting(ann)).toBe(0);
  });

  test('two concurrent deletions of one post both succeed', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const { id, link, sequence } = await channel(ann);
    await ann.account.channels.update(id, { moderators: [bob.account.id] });
    await bob.account.channels.follow(link);
    block(relay, 'channel.post.delete', 'channel.read');
    const deleting = ann.account.channels.delete(id, sequence);
    await expect(deleting).rejects.toMatchObject(unreachable);
    relay.behave();
    await bob.account.channels.delete(id, sequence);
    const events = await (await ann.again()).sync();
    expect(events.filter((event) => 'error' in event)).toEqual([]);
    expect(await waiting(ann)).toBe(0);
  });

  test('deleting a post just deleted by another account succeeds; a known deletion is refused', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const { id, link, sequence } = await channel(ann);
    await ann.account.channels.update(id, { moderators: [bob.account.id] });
    await bob.account.channels.follow(link);
    await bob.account.channels.delete(id, sequence);
    await ann.account.channels.delete(id, sequence);
    await ann.account.sync();
    const again = ann.account.channels.delete(id, sequence);
    await expect(again).rejects.toMatchObject({ error: 'state_conflict' });
    expect(await waiting(ann)).toBe(0);
  });

  test('a revision of which only the answer was lost succeeds at once', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id } = await channel(ann);
    relay.lose('channel.update', 1);
    const { descriptor } = await ann.account.channels.update(id, { name: 'Olds' });
    expect(descriptor).toMatchObject({ name: 'Olds', revision: 1 });
    relay.lose('channel.close', 1);
    const closed = await ann.account.channels.close(id);
    expect(closed.descriptor).toMatchObject({ status: 'closed', revision: 2 });
    expect(await waiting(ann)).toBe(0);
  });

  test('a revision is never signed again while an earlier one may be accepted', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id } = await channel(ann);
    blockUpdate();
    const updating = ann.account.channels.update(id, { name: 'Olds' });
    await expect(updating).rejects.toMatchObject(unreachable);
    relay.behave();
    expect((await ann.account.channels.get(id)).descriptor.name).toBe('News');
    const { descriptor } = await (await ann.again()).channels.update(id, { description: 'more' });
    expect(descriptor).toMatchObject({ name: 'Olds', description: 'more', revision: 2 });
    expect(await waiting(ann)).toBe(0);
  });

  test('a revision that another device wrote first is signed again on the next one', async () => {
    const phone = await relay.world.person();
    const tablet = await anotherDevice(relay.world, phone);
    const { id, link } = await phone.channels.create({ name: 'News' });
    await tablet.channels.follow(link);
    const old = relay.honest.get('channel.resolve');
    await phone.channels.update(id, { name: 'Phone' });
    let asked = 0;
    relay.lie('channel.resolve', (answer) => {
      asked += 1;
      return asked === 1 ? old : answer;
    });
    relay.asked.clear();
    await tablet.channels.update(id, { description: 'by the tablet' });
    expect(relay.asked.get('channel.update')).toBe(2);
    const { descriptor: current } = await tablet.channels.preview(link);
    expect(current).toMatchObject({ revision: 2, name: 'Phone', description: 'by the tablet' });
  });

  test('a pending revision that another device wrote first is told as rejected', async () => {
    const phone = await RestartableClient.begin(relay);
    const tablet = await anotherDevice(relay.world, phone.account);
    const { id, link } = await channel(phone);
    await tablet.channels.follow(link);
    blockUpdate();
    const updating = phone.account.channels.update(id, { name: 'Phone' });
    await expect(updating).rejects.toMatchObject(unreachable);
    relay.behave();
    await tablet.channels.update(id, { name: 'Tablet' });
    expect(await (await phone.again()).sync()).toContainEqual(
      expect.objectContaining({ kind: 'message-status', write: 'update', status: 'rejected' }),
    );
    expect((await phone.account.channels.get(id)).descriptor.name).toBe('Tablet');
    expect(await waiting(phone)).toBe(0);
  });
});

describe('long timelines', () => {
  /** A channel with more events than a page has. */
  async function long(count: number): Promise<{ ann: Account; id: string; link: string }> {
    const ann = await relay.world.person();
    const { id, link } = await ann.channels.create({ name: 'Long' });
    for (let number = 1; number <= count; number += 1) {
      await ann.channels.send(id, { text: String(number) });
    }
    return { ann, id, link };
  }

  test('are read page by page in both directions; each page is written once', async () => {
    const { ann, id, link } = await long(230);
    const stores = [new WatchedStore(), new WatchedStore()] as const;
    const people = await Promise.all(
      stores.map(async (store) => (await relay.world.client({ store })).setUp()),
    );
    const [bob, carl] = people as [Account, Account];
    await bob.channels.follow(link, { from: 'creation' });
    expect(await bob.channels.listEntries(id)).toHaveLength(231);
    await carl.channels.follow(link);
    expect((await carl.channels.get(id)).span).toEqual({ first: 131, position: 230 });
    expect(await carl.channels.readOlder(id)).toBe(true);
    expect((await carl.channels.get(id)).span).toEqual({ first: 31, position: 230 });
    expect(await carl.channels.readOlder(id)).toBe(false);
    expect(await carl.channels.readOlder(id)).toBe(false);
    expect(await carl.channels.listEntries(id)).toEqual(await bob.channels.listEntries(id));
    for (const { changes } of stores) {
      const rows = changes.filter((key) => key.startsWith('channel-timeline/'));
      expect(rows).toHaveLength(231);
      expect(new Set(rows).size).toBe(231);
    }
    const [, store] = stores;
    const before = store.changes.length;
    await ann.channels.edit(id, 3, { text: 'three' });
    await carl.sync();
    // One row per post and one for the channel: the cost of a page does not depend on the rest.
    const touched = store.changes.slice(before).filter((key) => key.startsWith('channel'));
    expect(touched).toEqual([`channel-timeline/${id}/0000000000000003`, `channels/${id}`]);
    const newest = await carl.channels.listPosts(id, { before: 230, limit: 2, newestFirst: true });
    expect(newest.map(({ sequence }) => sequence)).toEqual([229, 228]);
    expect(
      await carl.channels.listEntries(id, { before: 5, limit: 2, newestFirst: true }),
    ).toMatchObject([{ sequence: 4 }, { sequence: 3, content: { body: { text: 'three' } } }]);
  });

  test('two readers of one store lose and repeat no event', async () => {
    const { id, link } = await long(120);
    const store = new MemoryStore();
    const bob = await (await relay.world.client({ store })).setUp();
    const twin = await (await relay.world.client({ store })).account();
    await bob.channels.follow(link, { from: 'creation' });
    await bob.channels.unfollow(id);
    await bob.channels.follow(link);
    const found = await Promise.all([bob.sync(), twin.sync(), bob.channels.readOlder(id)]);
    await twin.channels.readOlder(id);
    expect(found).toHaveLength(3);
    const entries = await twin.channels.listEntries(id);
    expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, at) => at));
    expect(entries).toHaveLength(121);
  });

  test('a page is not applied if another reader of the store moved the position', async () => {
    const ann = await relay.world.person();
    const { id, link } = await ann.channels.create({ name: 'Race' });
    const store = new MemoryStore();
    const bob = await (await relay.world.client({ store, prefer: 'http' })).setUp();
    const twin = await (await relay.world.client({ store })).account();
    const carl = await relay.world.person();
    for (const reader of [bob, carl]) await reader.channels.follow(link);
    await ann.channels.send(id, { text: 'first' });
    await carl.channels.sync(id);
    const late = JSON.stringify(relay.honest.get('channel.read'));
    const held = Promise.withResolvers<ServerResponse>();
    relay.overHttp.set('channel.read', held.resolve);
    const reading = bob.channels.sync(id);
    const response = await held.promise;
    relay.overHttp.clear();
    await ann.channels.edit(id, 1, { text: 'edited' });
    await twin.channels.sync(id);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(late);
    await reading;
    expect(await postTexts(bob, id)).toEqual(['edited']);
  });
});

/** Lets the host answer calls of a method with an error. */
function refuse(method: string, code: string): void {
  relay.overHttp.set(method, (response) => {
    response.writeHead(code === 'rate_limited' ? 429 : 400, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ code, message: 'not now' }));
  });
}

describe('06 §10.4: a write that the host refuses', () => {
  test('temporarily does not delay reading, and is sent later in order', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const { id, link } = await channel(ann);
    await ann.account.channels.update(id, { moderators: [bob.account.id] });
    await bob.account.channels.follow(link);
    await bob.account.sync();
    refuse('channel.post', 'rate_limited');
    const posting = bob.account.channels.send(id, { text: 'early' });
    await expect(posting).rejects.toMatchObject({ error: 'rate_limited' });
    await ann.account.channels.edit(id, 1, { text: 'news' });
    const events = await bob.account.sync();
    const kinds = events.map(({ kind }) => kind).filter((kind) => kind !== 'message-status');
    expect(kinds).toEqual(['channel-failed', 'channel-edited']);
    relay.behave();
    await bob.account.channels.send(id, { text: 'late' });
    expect(await atHost(ann.account, link)).toEqual(['news', 'early', 'late']);
    expect(await waiting(bob)).toBe(0);
  });

  test('a change over a quota fails at once and does not block later writes', async () => {
    const ann = await RestartableClient.begin(relay);
    const { id, sequence } = await channel(ann);
    refuse('channel.post.edit', 'rate_limited');
    const editing = ann.account.channels.edit(id, sequence, { text: 'too much' });
    await expect(editing).rejects.toMatchObject({ error: 'rate_limited' });
    expect(await waiting(ann)).toBe(0);
    // An edit lost earlier gives an event when it is given up.
    block(relay, 'channel.post.edit');
    const lost = ann.account.channels.edit(id, sequence, { text: 'lost' });
    await expect(lost).rejects.toMatchObject(unreachable);
    refuse('channel.post.edit', 'rate_limited');
    const events = await ann.account.sync();
    expect(events.at(-1)).toMatchObject({
      kind: 'message-status',
      conversation: { kind: 'channel', id },
      write: 'edit',
      status: 'rejected',
    });
    expect(await waiting(ann)).toBe(0);
  });

  test('posts are published in the order of writing, after a pending creation', async () => {
    const ann = await RestartableClient.begin(relay);
    block(relay, 'channel.create', 'channel.resolve');
    const creating = ann.account.channels.create({ name: 'News' });
    await expect(creating).rejects.toMatchObject(unreachable);
    relay.behave();
    const [made] = await ann.account.channels.list();
    const { id, link } = made as { id: string; link: string };
    block(relay, 'channel.post');
    const first = ann.account.channels.send(id, { text: 'first' });
    await expect(first).rejects.toMatchObject(unreachable);
    relay.behave();
    await ann.account.channels.send(id, { text: 'second' });
    expect(await atHost(ann.account, link)).toEqual(['first', 'second']);
  });

  test('06 §3: a repeated creation has another nonce', async () => {
    const nonces: string[] = [];
    const ann = await RestartableClient.begin(relay);
    relay.when.set('channel.create', () => {
      nonces.push('asked');
    });
    refuse('channel.create', 'clock_skew');
    const made: string[] = [];
    const noted = async () =>
      made.push(...(await ann.account.channels.list()).map(({ descriptor }) => descriptor.nonce));
    const answer = relay.overHttp.get('channel.create');
    relay.overHttp.set('channel.create', (response) => {
      void noted().then(() => answer?.(response));
    });
    await expect(ann.account.channels.create({ name: 'Late' })).rejects.toMatchObject({
      error: 'clock_skew',
    });
    expect(nonces).toHaveLength(2);
    expect(new Set(made).size).toBe(2);
  });
});

test('06 §4: a creation settled by two programs moves no position back', async () => {
  const store = new MemoryStore();
  const ann = await (await relay.world.client({ store, prefer: 'http' })).setUp();
  const twin = await (await relay.world.client({ store, prefer: 'http' })).account();
  const held = Promise.withResolvers<ServerResponse>();
  // One program gets the answer late, after the other one settled the creation and read on.
  relay.overHttp.set('channel.create', held.resolve);
  const creating = ann.channels.create({ name: 'News' });
  const response = await held.promise;
  relay.overHttp.clear();
  await twin.sync();
  const [made] = await twin.channels.list();
  const { id } = made as { id: string };
  await twin.channels.update(id, { name: 'Newer' });
  await twin.sync();
  const revisions: number[] = [];
  relay.when.set('channel.read', () => {
    void ann.channels.get(id).then(({ descriptor }) => revisions.push(descriptor.revision));
  });
  relay.asked.clear();
  response.writeHead(204);
  response.end();
  await creating;
  expect(await twin.channels.get(id)).toMatchObject({
    descriptor: { name: 'Newer', revision: 1 },
    span: { first: 0, position: 1 },
  });
  expect(revisions).toEqual([1]);
});
