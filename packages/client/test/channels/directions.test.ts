/**
 * Reading a channel from any position, in any direction and with pages of any size gives the same
 * posts: compared with the projection of the whole timeline.
 */
import {
  type ChannelPage,
  emptyProjection,
  projectChannel,
  verifyChannelPage,
} from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { chanceOf } from '../../../relay/test/support/chance.ts';
import type { Account } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import { postTexts, textOf } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { channels: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Writes random posts, edits, deletions and revisions. */
async function write(owner: Account, id: string, { next, count }: Chance): Promise<void> {
  const posts: number[] = [];
  const any = () => posts[Math.floor(next() * posts.length)] as number;
  for (let step = 0; step < count; step += 1) {
    const which = posts.length === 0 ? 0 : next();
    if (which < 0.4) {
      posts.push((await owner.channels.send(id, { text: `post ${step}` })).sequence);
    } else if (which < 0.8) {
      await owner.channels.edit(id, any(), { text: `edit ${step}` });
    } else if (which < 0.95) {
      const target = any();
      posts.splice(posts.indexOf(target), 1);
      await owner.channels.delete(id, target);
    } else await owner.channels.update(id, { description: `revision ${step}` });
  }
}

interface Chance {
  readonly next: () => number;
  readonly count: number;
}

/** The host returns fewer events than requested: pages of one to four events. */
function shorten(next: () => number, direction: 'newer' | 'older'): void {
  relay.lie('channel.read', (page: ChannelPage) => {
    const most = 1 + Math.floor(next() * 4);
    if (page.events.length <= most) return page;
    const events = direction === 'newer' ? page.events.slice(0, most) : page.events.slice(-most);
    const signers = new Set(events.map(({ signer_device_id }) => signer_device_id));
    expect(signers.size).toBe(page.certificates.length);
    return { ...page, events, has_more: true };
  });
}

test.each([1, 2, 3, 4])('seed %i: every order of reading gives the same posts', async (seed) => {
  const next = chanceOf(seed);
  const [ann, live, whole, newer, older, middle] = await Promise.all(
    Array.from({ length: 6 }, () => relay.world.person({ prefer: 'http' })),
  );
  const readers = { live, whole, newer, older, middle } as Record<string, Account>;
  if (ann === undefined || live === undefined || middle === undefined)
    throw new Error('a reader is missing');
  const { id, link, relayId } = await ann.channels.create({ name: `Seed ${seed}` });
  await live.channels.follow(link);
  await write(ann, id, { next, count: 12 });
  await live.channels.sync(id);
  await middle.channels.follow(link, { from: 'creation' });
  await write(ann, id, { next, count: 24 });
  await live.channels.sync(id);

  await readers.whole!.channels.follow(link, { from: 'creation' });
  const page = relay.honest.get('channel.read') as ChannelPage;
  shorten(next, 'newer');
  await readers.newer!.channels.follow(link, { from: 'creation' });
  await middle.channels.sync(id);
  shorten(next, 'older');
  await readers.older!.channels.follow(link);
  while (await readers.older!.channels.readOlder(id));

  const { events } = verifyChannelPage(network, page, { channelId: id, relayId });
  const { posts, descriptor } = projectChannel(emptyProjection, events);
  const expected = [...posts.values()].map(({ state }) => state.body?.text ?? '');
  expect(expected.length).toBeGreaterThan(0);
  for (const [name, reader] of Object.entries(readers)) {
    expect(await postTexts(reader, id), name).toEqual(expected);
    expect((await reader.channels.get(id)).descriptor, name).toEqual(descriptor);
    expect((await reader.channels.get(id)).span, name).toEqual({
      first: 0,
      position: events.at(-1)?.sequence,
    });
  }
  const entries = await readers.whole!.channels.listEntries(id);
  for (const late of ['newer', 'older']) {
    expect(await readers[late]!.channels.listEntries(id), late).toEqual(entries);
  }
  relay.behave();
  const { entries: looked } = await ann.channels.preview(link, { after: -1 });
  const lookedAt = looked.flatMap((entry) => (entry.kind === 'post' ? [textOf(entry)] : []));
  expect(lookedAt).toEqual(expected);
});
