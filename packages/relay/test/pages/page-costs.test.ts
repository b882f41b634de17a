import { encodeBase64url } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

/** With pages of four entries, texts up to 8,000 bytes are read with their rows. */
const pageBytes = 40_000;
const limit = 4;
const relay = inProcessRelay({ pageBytes });
const ann = relay.person('ann');

/** A timeline that ann writes to and reads. */
interface Timeline {
  readonly write: (words: string) => Promise<unknown>;
  readonly method: 'message.timeline.sync' | 'group.sync' | 'channel.read';
  readonly params: JsonObject;
  /** The member of a page that has the entries. */
  readonly entries: 'items' | 'events';
}

async function accountTimeline(): Promise<Timeline> {
  const session = ann.session();
  return {
    write: (words) => relay.call('message.send', ann.message(ann, { text: words }), { session }),
    ...{ method: 'message.timeline.sync', params: {}, entries: 'items' },
  };
}

async function groupTimeline(): Promise<Timeline> {
  const group = await TestGroup.create(relay, ann);
  const { groupId: group_id } = group;
  const session = ann.session();
  const newMessage = (words: string) => {
    const { device_signature: _, ...message } = group.message(ann, 0);
    const ciphertext = encodeBase64url(Buffer.from(words));
    return group.sign({ ...message, payload: { ...message.payload, ciphertext } });
  };
  return {
    write: (words) => relay.call('group.message.send', newMessage(words), { session }),
    ...{ method: 'group.sync', params: { group_id }, entries: 'events' },
  };
}

async function channelTimeline(): Promise<Timeline> {
  const channel = await TestChannel.create(relay, ann);
  return {
    write: (words) => channel.post({ body: text(words) }),
    ...{ method: 'channel.read', params: { channel_id: channel.channelId }, entries: 'events' },
  };
}

interface Page {
  readonly entries: readonly { readonly sequence: number }[];
  readonly bytes: number;
  readonly hasMore: boolean;
  readonly statements: number;
}

async function read(timeline: Timeline, after: number): Promise<Page> {
  let statements = 0;
  relay.faults.beforeStatement = () => {
    statements += 1;
  };
  const params = { ...timeline.params, after, limit };
  const page = (await relay.call(timeline.method, params, { session: ann.session() })) as never;
  delete relay.faults.beforeStatement;
  const { [timeline.entries]: entries, has_more: hasMore } = page as {
    readonly has_more: boolean;
  } & Record<string, Page['entries']>;
  if (entries === undefined) throw new Error('a page has entries');
  return { entries, hasMore, bytes: JSON.stringify(page).length, statements };
}

async function readAll(timeline: Timeline): Promise<Page[]> {
  const pages: Page[] = [];
  for (let after = -1, hasMore = true; hasMore; ) {
    const page = await read(timeline, after);
    pages.push(page);
    hasMore = page.hasMore;
    after = page.entries.at(-1)?.sequence ?? after;
  }
  return pages;
}

describe.each([
  ['04 §18: message.timeline.sync', accountTimeline, { empty: 4, page: 5 }],
  ['05 §13.4: group.sync', groupTimeline, { empty: 6, page: 8 }],
  ['06 §8.11: channel.read', channelTimeline, { empty: 2, page: 3 }],
] as const)('%s', (_name, make, statements) => {
  test('a page takes as many statements however many entries there are', async () => {
    const timeline = await make();
    await timeline.write('x'.repeat(60));
    const first = await read(timeline, -1);
    expect(first.statements).toBe(statements.page);
    for (let count = 0; count < 12; count += 1) await timeline.write('x'.repeat(60));
    const head = (await readAll(timeline)).at(-1)?.entries.at(-1)?.sequence ?? -1;
    expect(await read(timeline, head - 6)).toMatchObject({ statements: statements.page });
    const end = await read(timeline, head);
    expect(end).toMatchObject({ entries: [], hasMore: false, statements: statements.empty });
  });

  test('a page of large entries takes one statement more, and none holds more than pageBytes', async () => {
    const timeline = await make();
    const sizes = [60, 9_000, 60, 15_000, 15_000, 15_000, 9_000, 60, 60];
    for (const size of sizes) await timeline.write('x'.repeat(size));
    const pages = await readAll(timeline);
    const sequences = pages.flatMap(({ entries }) => entries.map(({ sequence }) => sequence));
    expect(sequences).toEqual(sequences.map((_, index) => index));
    expect(sequences.length).toBeGreaterThanOrEqual(sizes.length);
    expect(pages.length).toBeGreaterThan(2);
    for (const { bytes } of pages) expect(bytes).toBeLessThan(pageBytes);
    expect(Math.max(...pages.map((page) => page.statements))).toBe(statements.page + 1);
  });

  test('an entry larger than a page comes alone', async () => {
    const timeline = await make();
    for (const size of [60, 51_000, 60]) await timeline.write('x'.repeat(size));
    const pages = await readAll(timeline);
    const large = pages.filter(({ bytes }) => bytes > pageBytes);
    expect(large).toMatchObject([{ entries: [{}] }]);
  });
});
