/** People of channels, who write to them whatever happens to the relay. */
import {
  type ChannelPage,
  emptyProjection,
  projectChannel,
  verifyChannelPage,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { Row } from '../../src/storage/types.ts';
import { type By, TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import type { KillableCall, KillableRelay, Outcomes } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { upTo } from '../support/chance.ts';
import { network } from '../support/modules.ts';
import type { IsOver, Tables, Writers } from './writers.ts';

/** A post whose publication was confirmed, with what its writers know about it. */
interface Confirmed {
  readonly params: JsonObject;
  readonly by: By;
  readonly sequence: number;
  /** Confirmed edits; the last of them is in force. */
  edits: number;
  isDeleted: boolean;
}

/** One channel with its accounts, and what was confirmed to them. */
interface ChannelUnderTest {
  readonly channel: TestChannel;
  readonly people: readonly [owner: Person, moderator: Person, sometimes: Person, reader: Person];
  readonly posts: Confirmed[];
  /** Signatures of accepted descriptors, by revision. */
  readonly descriptors: Map<number, string>;
  /** Confirmed reasons of reports, by the post's sequence. */
  readonly reports: Map<number, string>;
  /** Reports that were refused, at the first try or a later one. */
  readonly uncertain: { readonly sequence: number; readonly reason: string }[];
}

/** Finds writes that were accepted although their repeat is refused: the timeline has them. */
export class TimelineOutcomes implements Outcomes {
  /** Any account reads channels. */
  reader: Person | undefined;
  readonly #ground: KillableRelay;

  constructor(ground: KillableRelay) {
    this.#ground = ground;
  }

  accept(): void {}

  async wasWritten({ params }: KillableCall): Promise<boolean> {
    const { channel_id, device_signature } = params;
    const session = this.reader?.session();
    for (let after = -1; ; ) {
      const range = { channel_id, after, limit: 500 };
      const answer = await this.#ground.call('channel.read', range, { session });
      const { events, has_more } = answer as unknown as ChannelPage;
      const payloads = events.map(({ payload }) => payload as JsonObject);
      if (payloads.some((payload) => payload.device_signature === device_signature)) return true;
      if (!has_more) return false;
      after = events.at(-1)?.sequence ?? after;
    }
  }
}

async function openChannel(ground: KillableRelay, name: string): Promise<ChannelUnderTest> {
  const [ann, ben, cem, dora] = (await Promise.all(
    ['ann', 'ben', 'cem', 'dora'].map((each) => ground.register(`${each} ${name}`)),
  )) as [Person, Person, Person, Person];
  const channel = await TestChannel.create(ground, ann, { moderators: [ben.account] });
  const descriptors = new Map([[0, channel.descriptor.device_signature]]);
  return {
    channel,
    people: [ann, ben, cem, dora],
    posts: [],
    descriptors,
    reports: new Map(),
    uncertain: [],
  };
}

/** Updates the descriptor again and again; two callers race for each revision, and one loses. */
async function updateRepeatedly(
  ground: KillableRelay,
  { channel, people, descriptors }: ChannelUnderTest,
  isOver: IsOver,
): Promise<void> {
  const [ann, ben, cem] = people;
  for (let turn = 0; !isOver(); turn += 1) {
    const moderators = [ben, ...(turn % 2 === 0 ? [cem] : [])].map(({ account }) => account);
    const next = channel.nextDescriptor({ moderators, topic: upTo(1e12) });
    try {
      await ground.call('channel.update', next, { session: ann.session() });
      expect(descriptors.has(next.revision)).toBe(false);
      descriptors.set(next.revision, next.device_signature);
    } catch (error) {
      expect(error).toHaveProperty('code', 'state_conflict');
    }
    ({ descriptor: channel.descriptor } = await channel.resolve());
  }
}

/** Posts, edits and deletes as an account that has the right most of the time. */
async function writeRepeatedly(
  { channel, posts }: ChannelUnderTest,
  by: By,
  isOver: IsOver,
): Promise<void> {
  const mayBeRefused = async (act: () => Promise<unknown>): Promise<boolean> => {
    try {
      await act();
      return true;
    } catch (error) {
      expect(error).toHaveProperty('code', 'forbidden');
      return false;
    }
  };
  for (let turn = 0; !isOver(); turn += 1) {
    const params = channel.newPost({ body: text(`${turn}`) }, by);
    let sequence = 0;
    const isAccepted = await mayBeRefused(async () => {
      sequence = await channel.publish(params, by);
    });
    if (!isAccepted) continue;
    const post: Confirmed = { params, by, sequence, edits: 0, isDeleted: false };
    posts.push(post);
    for (let edit = 1; edit <= turn % 4; edit += 1) {
      const patch = { body: text(`edit ${edit}`) };
      if (await mayBeRefused(() => channel.edit(sequence, patch, by))) post.edits = edit;
      else break;
    }
    if (turn % 3 !== 0) continue;
    post.isDeleted = await mayBeRefused(() => channel.delete(sequence, {}, by));
  }
}

/** Creates channels and closes them. */
async function createAndClose(ground: KillableRelay, { people }: ChannelUnderTest, isOver: IsOver) {
  const [owner] = people;
  while (!isOver()) {
    const channel = await TestChannel.create(ground, owner);
    const sequence = await channel.post();
    await channel.close();
    const { descriptor } = await channel.resolve();
    expect([sequence, descriptor.status, descriptor.revision]).toEqual([1, 'closed', 1]);
    expect(await channel.sequences()).toEqual([0, 1, 2]);
  }
}

/** Reads all the time: no page has an edit without its post. */
async function readRepeatedly(
  ground: KillableRelay,
  { channel, people }: ChannelUnderTest,
  isOver: IsOver,
) {
  const [, , , dora] = people;
  const known = { channelId: channel.channelId, relayId: ground.relayId };
  const shown = new Set<number>();
  for (let after = -1; !isOver(); ) {
    const page = await channel.read({ after, limit: 20 }, { by: dora });
    const { events, refused } = verifyChannelPage(network, page, known);
    expect(refused).toEqual([]);
    // A post read earlier may be hidden by now; an edit needs a post that was read.
    if (after === -1) shown.clear();
    for (const { sequence } of page.events) shown.add(sequence);
    for (const { kind, payload } of events) {
      if (kind === 'edit') expect(shown.has(payload.target_sequence)).toBe(true);
    }
    after = page.has_more ? (page.events.at(-1)?.sequence ?? -1) : -1;
  }
}

async function expectWhole(ground: KillableRelay, tested: ChannelUnderTest): Promise<void> {
  const { channel, posts, descriptors } = tested;
  const events = await readWhole(ground, channel);
  const found = events.flatMap((event) =>
    event.kind === 'descriptor' ? [[event.payload.revision, event.payload.device_signature]] : [],
  );
  // Each confirmed revision exists once, and no other.
  expect(found).toEqual([...descriptors].sort(([a], [b]) => a - b));
  expect(found.map(([revision]) => revision)).toEqual(found.map((_, index) => index));
  // Every confirmed post that was not deleted is at its sequence with its last edit.
  const { posts: shown } = projectChannel(emptyProjection, events);
  const kept = posts.filter(({ isDeleted }) => !isDeleted).sort((a, b) => a.sequence - b.sequence);
  const content = [...shown.values()].map(({ sequence, post, state }) => [sequence, post, state]);
  expect(content).toEqual(
    kept.map(({ sequence, params, edits }) => {
      const body = edits === 0 ? params.body : text(`edit ${edits}`);
      return [sequence, params, { body }];
    }),
  );
  const sum = (of: readonly Confirmed[]) => of.reduce((all, { edits }) => all + edits + 1, 0);
  const deletions = posts.length - kept.length;
  expect(events).toHaveLength(descriptors.size + sum(kept) + deletions);
  // Repeated and lost requests got no sequence.
  expect(events.at(-1)?.sequence).toBeLessThan(descriptors.size + sum(posts) + deletions);
  for (const { params, sequence, by } of posts) {
    expect(await channel.publish(params as never, by)).toBe(sequence);
  }
  expect(await readWhole(ground, channel)).toHaveLength(events.length);
}

/** Checks that the rows of the tables fit each other. */
function expectConsistent(
  tables: Tables,
  { channel, posts, descriptors, reports, uncertain }: ChannelUnderTest,
): void {
  const all = (table: string) => tables[table] as readonly Row[];
  for (const { channel_id, head, revision } of all('channels')) {
    const rows = (table: string) => all(table).filter((row) => row.channel_id === channel_id);
    const events = rows('channel_events');
    const of = (kind: string) => events.filter((event) => event.kind === kind);
    expect(of('descriptor').at(-1)?.descriptor_rev).toBe(revision);
    expect(events.at(-1)?.sequence).toBe(head);
    const signers = new Set(events.map(({ signer_device_id }) => signer_device_id));
    expect(
      rows('channel_certificates')
        .map(({ device_id }) => device_id)
        .sort(),
    ).toEqual([...signers].sort());
    const posts = rows('channel_posts');
    const sequences = (status: string) =>
      posts.filter((post) => post.status === status).map(({ sequence }) => sequence);
    expect(of('post').map(({ sequence }) => sequence)).toEqual(sequences('readable'));
    const deleted = of('delete').map(({ target }) => target as number);
    expect(deleted.sort((a, b) => a - b)).toEqual(sequences('deleted'));
    const hidden = new Set(rows('channel_hidden_posts').map(({ sequence }) => sequence));
    const readable = new Set(sequences('readable'));
    for (const { target } of of('edit')) {
      expect(readable.has(target ?? null) || hidden.has(target ?? null)).toBe(true);
    }
  }
  const row = all('channels').find(({ channel_id }) => channel_id === channel.channelId);
  const written = posts.map(({ edits, isDeleted }) => 1 + edits + (isDeleted ? 1 : 0));
  const count = written.reduce((sum, each) => sum + each, descriptors.size);
  expect(row?.head).toBe(count - 1);
  const stored = new Map(
    all('channel_reports').map(({ sequence, reason }) => [sequence, JSON.parse(String(reason))]),
  );
  // A report whose answer was lost is refused when it is repeated if its post was deleted meanwhile.
  for (const { sequence, reason } of uncertain) {
    if (stored.get(sequence) === reason) reports.set(sequence, reason);
  }
  expect(stored).toEqual(reports);
}

/** Reports confirmed posts, some of them again. */
async function reportRepeatedly(
  ground: KillableRelay,
  { channel, people, posts, reports, uncertain }: ChannelUnderTest,
  isOver: IsOver,
): Promise<void> {
  const [, , , dora] = people;
  const session = dora.session();
  for (let turn = 0; !isOver(); turn += 1) {
    const post = posts[turn % Math.max(1, posts.length)];
    if (post === undefined) {
      await channel.resolve();
      continue;
    }
    const { sequence } = post;
    const report = { target_sequence: sequence, reason: `reason ${turn}` };
    const params = { channel_id: channel.channelId, ...report };
    try {
      await ground.call('channel.post.report', params, { session });
      reports.set(sequence, report.reason);
    } catch (error) {
      // The post was deleted.
      expect(error).toHaveProperty('code', 'state_conflict');
      uncertain.push({ sequence, reason: report.reason });
    }
  }
}

/** Writers of a channel, and of channels that are created and closed all the time. */
export class ChannelWriters implements Writers {
  readonly #ground: KillableRelay;
  readonly #tested: ChannelUnderTest;

  private constructor(ground: KillableRelay, tested: ChannelUnderTest) {
    this.#ground = ground;
    this.#tested = tested;
  }

  static async open(ground: KillableRelay, outcomes: TimelineOutcomes): Promise<ChannelWriters> {
    const tested = await openChannel(ground, 'channel');
    const [ann, ben, , dora] = tested.people;
    outcomes.reader = ann;
    for (const person of [ben, dora]) ground.useSocket(person);
    ground.subscribe(dora, 'channel.subscribe', [tested.channel.channelId]);
    return new ChannelWriters(ground, tested);
  }

  async write(isOver: IsOver): Promise<unknown> {
    const ground = this.#ground;
    const tested = this.#tested;
    const [ann, ben, cem] = tested.people;
    return await Promise.all([
      ...[updateRepeatedly(ground, tested, isOver), updateRepeatedly(ground, tested, isOver)],
      readRepeatedly(ground, tested, isOver),
      ...[ann, ben, ben, cem].map((by) => writeRepeatedly(tested, { by }, isOver)),
      createAndClose(ground, tested, isOver),
      reportRepeatedly(ground, tested, isOver),
    ]);
  }

  async check(): Promise<void> {
    await expectWhole(this.#ground, this.#tested);
  }

  checkRows(tables: Tables): void {
    expectConsistent(tables, this.#tested);
  }

  async heads(): Promise<ReadonlyMap<string, number>> {
    const events = await readWhole(this.#ground, this.#tested.channel);
    return new Map([[this.#tested.channel.channelId, events.at(-1)?.sequence ?? -1]]);
  }
}
