/** A channel as a reader verifies it, with nothing but the client's functions. */
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
import { assertConforms } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { ChannelObjects } from './channel-objects.ts';

/** Whoever reads: any device session will do. */
export type Reader = Pick<TestAccount, 'caller'>;

/** Descriptors of a channel that one traversal has verified, by revision. */
type Descriptors = ReadonlyMap<number, ChannelDescriptor>;

/** A page whose every event is verified, and the descriptors known behind it. */
export interface ReadPage {
  readonly page: ChannelPage;
  readonly events: readonly VerifiedChannelEvent[];
  readonly descriptors: Descriptors;
}

/**
 * Reads one page and verifies it (06 §10.1), with the descriptors it needs and does not bring.
 * Whatever would keep an event from being adopted is a fault of the relay.
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
  assertConforms(
    refused === undefined,
    `event ${refused?.sequence} verifies: ${refused?.error.message}`,
  );
  assertConforms(verified.missing.length === 0, 'every event has its descriptor');
  const signers = new Set(page.events.map(({ signer_device_id }) => signer_device_id));
  assertConforms(
    signers.size === page.certificates.length,
    'a certificate for each signer, and no other',
  );
  return { page, events: verified.events, descriptors: verified.descriptors };
}

/** A channel's descriptor, verified; of a revision, or the current one. */
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

/** Everything readable of a channel, as it came and as it was verified. */
export interface Timeline {
  readonly raw: ChannelPage['events'];
  readonly events: readonly VerifiedChannelEvent[];
  readonly state: ChannelProjection;
}

/** Reads a channel from its creation on. */
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
 * Demands that revisions follow each other and every content is of the one in force, of a timeline
 * too young for anything to have been cleaned up (06 §5.1, §7.2).
 */
function assertRevisions(events: readonly VerifiedChannelEvent[]): void {
  let inForce = -1;
  for (const { kind, sequence, descriptorRevision } of events) {
    if (kind === 'descriptor') inForce += 1;
    const found = `event ${sequence} is of revision ${descriptorRevision}`;
    assertConforms(descriptorRevision === inForce, `${found}, not ${inForce}`);
  }
}

/** Reads a channel from its latest page back to its creation; events ascend. */
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

/** The last event of a channel, as it came. */
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
 * Does something that must leave no event and no other descriptor behind, whether or not it
 * succeeds. The current descriptor and the whole timeline are compared.
 */
export async function assertUnchanged<T>(
  channel: ChannelObjects,
  act: () => Promise<T>,
): Promise<T> {
  const seen = async () => {
    const { raw } = await readTimeline(channel);
    const descriptor: JsonObject = await resolveChannel(channel, channel.owner);
    return canonicalJson({ raw, descriptor } as unknown as JsonObject);
  };
  const before = await seen();
  const outcome = await act();
  assertConforms((await seen()) === before, 'the channel is as it was');
  return outcome;
}

/** Whether two objects are the same, whatever the order of their members. */
export function equal(one: unknown, other: unknown): boolean {
  return canonicalJson(one as JsonObject) === canonicalJson(other as JsonObject);
}

/** Demands that a post is now exactly this. */
export async function assertPostState(
  channel: ChannelObjects,
  target: number,
  state: JsonObject,
): Promise<void> {
  const { posts } = (await readTimeline(channel)).state;
  const found = posts.get(target)?.state;
  assertConforms(found !== undefined, 'the post is there');
  assertConforms(equal(found, state), `${JSON.stringify(state)}, not ${JSON.stringify(found)}`);
}
