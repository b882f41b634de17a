/** Reads and verifies a channel as a reader does, with the protocol package's functions. */
import {
  type ChannelDescriptor,
  type ChannelPage,
  type ChannelProjection,
  type ChannelRange,
  checkChannelPageBounds,
  emptyProjection,
  projectChannel,
  type VerifiedChannelEvent,
  verifyChannelPage,
  verifyChannelResolution,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { ChannelObjects } from './channel-objects.ts';

/** The reading account; any device session may read. */
export type Reader = Pick<TestAccount, 'caller'>;

/** A channel's verified descriptors, by revision. */
type Descriptors = ReadonlyMap<number, ChannelDescriptor>;

/** A page with its verified events, and the descriptors known after it. */
export interface ReadPage {
  readonly page: ChannelPage;
  readonly events: readonly VerifiedChannelEvent[];
  readonly descriptors: Descriptors;
}

/**
 * Reads and verifies one page (06 §10.1); fetches descriptors that the page needs and lacks. An
 * event that does not verify is a violation.
 */
export async function readChannelPage(
  channel: ChannelObjects,
  by: Reader,
  range: ChannelRange = {},
  before: Descriptors = new Map(),
): Promise<ReadPage> {
  const { channelId: channel_id, context } = channel;
  const answer: unknown = await context.expectOk(by.caller, 'channel.read', {
    channel_id,
    ...range,
  });
  const page = answer as ChannelPage;
  checkChannelPageBounds(page, range);
  const known = { channelId: channel_id, relayId: context.relayId };
  const descriptors = new Map(before);
  for (const revision of verifyChannelPage(context.network, page, { ...known, descriptors })
    .missing) {
    descriptors.set(revision, await resolveChannel(channel, by, revision));
  }
  const verified = verifyChannelPage(context.network, page, { ...known, descriptors });
  const [refused] = verified.refused;
  assertEqual(
    refused,
    undefined,
    `event ${refused?.sequence} verifies, not: ${refused?.error.message}`,
  );
  assertEqual(verified.missing.length, 0, 'a descriptor for every event');
  const signers = new Set(page.events.map(({ signer_device_id }) => signer_device_id));
  assertEqual(
    signers.size,
    page.certificates.length,
    'a certificate for each signer, and no other',
  );
  return { page, events: verified.events, descriptors: verified.descriptors };
}

/** Reads and verifies a channel's descriptor: of a revision, or the current one. */
export async function resolveChannel(
  channel: ChannelObjects,
  { caller }: Reader,
  revision?: number,
): Promise<ChannelDescriptor> {
  const { channelId: channel_id, context } = channel;
  const asked = revision === undefined ? {} : { revision };
  const answer = await context.expectOk(caller, 'channel.resolve', { channel_id, ...asked });
  const known = { channelId: channel_id, relayId: context.relayId, ...asked };
  return verifyChannelResolution(context.network, answer, known);
}

/** All readable events of a channel, as received and as verified. */
export interface Timeline {
  readonly raw: ChannelPage['events'];
  readonly events: readonly VerifiedChannelEvent[];
  readonly state: ChannelProjection;
}

/** Reads and verifies a channel from its creation to its end. */
export async function readTimeline(
  channel: ChannelObjects,
  by: Reader = channel.owner,
  { limit }: Pick<ChannelRange, 'limit'> = {},
): Promise<Timeline> {
  const raw: ChannelPage['events'] = [];
  const events: VerifiedChannelEvent[] = [];
  let descriptors: Descriptors = new Map();
  for (;;) {
    const range = { after: raw.at(-1)?.sequence ?? -1, ...(limit !== undefined && { limit }) };
    const read = await readChannelPage(channel, by, range, descriptors);
    raw.push(...read.page.events);
    events.push(...read.events);
    descriptors = read.descriptors;
    if (read.page.has_more) continue;
    assertRevisions(events);
    return { raw, events, state: projectChannel(emptyProjection, events) };
  }
}

/**
 * Asserts that revisions are consecutive and every event has the revision current at its position.
 * Holds for young channels, where nothing has been cleaned up yet (06 §5.1, §7.2).
 */
function assertRevisions(events: readonly VerifiedChannelEvent[]): void {
  let inForce = -1;
  for (const { kind, sequence, descriptorRevision } of events) {
    if (kind === 'descriptor') inForce += 1;
    const found = `event ${sequence} has revision ${inForce}, not ${descriptorRevision}`;
    assertEqual(descriptorRevision, inForce, found);
  }
}

/** Reads a channel backward from its latest page; returns the events in ascending order. */
export async function readBackward(
  channel: ChannelObjects,
  by: Reader,
  limit: number,
): Promise<ChannelPage['events']> {
  const events: ChannelPage['events'] = [];
  for (;;) {
    const before = events[0]?.sequence;
    const range = { limit, ...(before !== undefined && { before }) };
    const { page } = await readChannelPage(channel, by, range);
    events.unshift(...page.events);
    if (!page.has_more) return events;
  }
}

/** Reads the last event of a channel, as received. */
export async function lastEvent(
  channel: ChannelObjects,
  by: Reader = channel.owner,
): Promise<ChannelPage['events'][number]> {
  const { page } = await readChannelPage(channel, by, { limit: 1 });
  const [event] = page.events;
  assertConforms(event !== undefined, 'a page with the latest event');
  return event;
}

/**
 * Runs an action, successful or not, and asserts that the timeline and the current descriptor are
 * unchanged.
 */
export async function assertUnchanged<T>(
  channel: ChannelObjects,
  act: () => Promise<T>,
): Promise<T> {
  const read = async () => {
    const { raw } = await readTimeline(channel);
    const descriptor: JsonObject = await resolveChannel(channel, channel.owner);
    return canonicalJson({ raw, descriptor } as unknown as JsonObject);
  };
  const before = await read();
  const outcome = await act();
  assertEqual(await read(), before, 'the channel is unchanged');
  return outcome;
}

/** Compares two objects; the order of members does not matter. */
export function equal(one: unknown, other: unknown): boolean {
  return canonicalJson(one as JsonObject) === canonicalJson(other as JsonObject);
}

/** Asserts the exact current state of a post. */
export async function assertPostState(
  channel: ChannelObjects,
  target: number,
  state: JsonObject,
): Promise<void> {
  const { posts } = (await readTimeline(channel)).state;
  const found = posts.get(target)?.state;
  assertConforms(found !== undefined, 'the post exists');
  assertConforms(equal(found, state), `${JSON.stringify(state)}, not ${JSON.stringify(found)}`);
}
