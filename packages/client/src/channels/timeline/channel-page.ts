/** Reads one page of a channel's timeline from its host and verifies it (06 §10.1). */
import {
  type ChannelDescriptor,
  type ChannelPage,
  type ChannelRange,
  checkChannelPageBounds,
  type VerifiedChannelPage,
  verifyChannelPage,
  verifyChannelResolution,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { checkRelayAnswer, isClientError, isRefusal } from '../../errors.ts';
import { asRollback, callPage } from '../../sync/host-calls.ts';
import { checkSteps } from '../../sync/sequence-step.ts';
import { knownDescriptors } from '../channel-rows.ts';

/** Events per request; the host may return fewer. */
export const pageSize = 100;

/** A channel's ID and host, with members as rows and methods have them. */
export interface ChannelRef {
  readonly channel_id: string;
  readonly relay_id: string;
}

/** A verified page, with the events that did not verify. */
export interface ReadChannelPage {
  /** Verified events, ascending. */
  readonly events: VerifiedChannelPage['events'];
  /** Verified descriptors that the page contains or its events name. */
  readonly descriptors: readonly ChannelDescriptor[];
  /** Events that do not verify, with the reason. */
  readonly refused: readonly { readonly sequence: number; readonly reason: string }[];
  /** Sequences of all events, verified or not, ascending. */
  readonly sequences: readonly number[];
  readonly hasMore: boolean;
}

/**
 * Requests a page and verifies it. Descriptors that its events name come from the store, from the
 * page, or from `channel.resolve` by exact revision; an event without its descriptor is refused.
 *
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `invalid_channel_page` for a page that no honest host returns
 */
export async function readChannelPage(
  core: AccountCore,
  channel: ChannelRef,
  { range, signal }: { readonly range: ChannelRange; readonly signal: AbortSignal },
): Promise<ReadChannelPage> {
  const method = 'channel.read';
  const { channel_id: channelId, relay_id: relayId } = channel;
  const params = { channel_id: channelId, ...range };
  const page = await callPage(core, relayId, { method, params, signal });
  checkRelayAnswer('invalid_channel_page', method, () => checkChannelPageBounds(page, range));
  const { after = -1 } = range;
  checkSteps('sequence', page.events, { after, reason: 'invalid_channel_page', method });
  const revisions = page.events.map(({ descriptor_rev }) => descriptor_rev);
  const known = await core.store.read((tx) => knownDescriptors(tx, channelId, revisions));
  const verify = () =>
    core.network.computeAsync((network) =>
      checkRelayAnswer('invalid_channel_page', method, () =>
        verifyChannelPage(network, page, { channelId, relayId, descriptors: known }),
      ),
    );
  const wanted = new Set(unresolvedRevisions(core, page, known));
  await resolveInto(core, channel, { known, revisions: wanted, signal });
  let verified = await verify();
  const open = verified.missing.filter((revision) => !wanted.has(revision));
  if (open.length > 0) {
    // A descriptor event inside the page does not verify: resolve its revision.
    await resolveInto(core, channel, { known, revisions: open, signal });
    verified = await verify();
  }
  return summary(page, verified);
}

/** Lists revisions that events name and that are neither stored nor in the page. */
function unresolvedRevisions(
  { network }: AccountCore,
  { events }: ChannelPage,
  known: ReadonlyMap<number, ChannelDescriptor>,
): number[] {
  const isDescriptor = ({ payload }: ChannelPage['events'][number]) =>
    payload.$type === network.type('channel.descriptor');
  const brought = new Set(events.filter(isDescriptor).map(({ descriptor_rev }) => descriptor_rev));
  return events
    .map(({ descriptor_rev }) => descriptor_rev)
    .filter((revision) => !known.has(revision) && !brought.has(revision));
}

/** Resolves descriptors; one that the host lacks or that does not verify stays missing. */
async function resolveInto(
  core: AccountCore,
  channel: ChannelRef,
  {
    known,
    revisions,
    signal,
  }: {
    readonly known: Map<number, ChannelDescriptor>;
    readonly revisions: Iterable<number>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  for (const revision of revisions) {
    try {
      known.set(revision, await resolveDescriptor(core, channel, { revision, signal }));
    } catch (error) {
      const isMissing = isRefusal(error, 'not_found') || isClientError(error, 'relay_misbehaviour');
      if (!isMissing) throw error;
    }
  }
}

function summary(page: ChannelPage, verified: VerifiedChannelPage): ReadChannelPage {
  const { events, descriptors, refused } = verified;
  const reasons = new Map(refused.map(({ sequence, error }) => [sequence, error.message]));
  const held = new Set(events.map(({ sequence }) => sequence));
  const sequences = page.events.map(({ sequence }) => sequence);
  const left = page.events.filter(({ sequence }) => !held.has(sequence));
  return {
    events,
    descriptors: [...descriptors.values()],
    refused: left.map(({ sequence, descriptor_rev }) => ({
      sequence,
      reason: reasons.get(sequence) ?? `descriptor ${descriptor_rev} is not available`,
    })),
    sequences,
    hasMore: page.has_more,
  };
}

/**
 * Resolves a verified descriptor from the host: of an exact revision, or the current one.
 *
 * @throws RelayRefused `not_found`, RelayUnreachable
 * @throws RelayMisbehaviour `invalid_channel_descriptor`
 */
export async function resolveDescriptor(
  core: AccountCore,
  { channel_id: channelId, relay_id: relayId }: ChannelRef,
  { revision, signal }: { readonly revision?: number; readonly signal: AbortSignal },
): Promise<ChannelDescriptor> {
  const method = 'channel.resolve';
  const exact = revision === undefined ? {} : { revision };
  const params = { channel_id: channelId, ...exact };
  const answer = await core.relay(relayId).call(method, params, { signal });
  return checkRelayAnswer('invalid_channel_descriptor', method, () =>
    verifyChannelResolution(core.network, answer, { channelId, relayId, ...exact }),
  );
}

/** Reads one page after a position. @throws RelayMisbehaviour `channel_rollback` */
export async function readPageAfter(
  core: AccountCore,
  channel: ChannelRef,
  { after, signal }: { readonly after: number; readonly signal: AbortSignal },
): Promise<ReadChannelPage> {
  try {
    return await readChannelPage(core, channel, { range: { after, limit: pageSize }, signal });
  } catch (error) {
    throw asRollback(error, 'channel_rollback', { method: 'channel.read' });
  }
}
