/** Shared steps of `channel.create`, `channel.update` and `channel.close` (06 §8.1). */
import {
  type ChannelDescriptor,
  checkChannelOpen,
  checkNextRevision,
  ProtocolError,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { type Caller, requireCaller } from '../accounts/index.ts';
import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { DeviceSession } from '../sessions/session.ts';
import { readRestoredAt } from '../storage/restored.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { nextSequence, timelineNotice } from './append.ts';
import { requireChannel, type StoredChannel, updateChannel } from './channel-store.ts';
import { insertEvent, readDescriptor, supersedeDescriptor } from './event-store.ts';

/** Revisions that the owner of a restored host may skip: more than readers may have seen (06 §8.12). */
const mostSkipped = 2 ** 32;

/**
 * Refuses a descriptor that was not signed about now; exactly at the tolerance passes, in both
 * directions.
 *
 * @param signedAt Unix seconds, as `now`
 * @throws ProtocolError `clock_skew`
 */
export function checkSigningTime(
  { limits }: RelayContext,
  { signedAt, now }: { readonly signedAt: number; readonly now: number },
): void {
  if (Math.abs(signedAt - now) <= limits.authClockTolerance) return;
  throw new ProtocolError(
    'clock_skew',
    'signed outside the clock tolerance: check the clock of the device',
  );
}

/**
 * Refuses a revision that is not the next one. A relay that was put back to an earlier state accepts a
 * later one too: readers may have seen what it lost, and no revision has two descriptors (06 §8.12).
 *
 * @throws ProtocolError `state_conflict`
 */
export async function checkRevision(
  tx: Reader,
  channel: StoredChannel,
  revision: number,
): Promise<void> {
  const skipped = revision - (channel.revision + 1);
  const isLater = skipped > 0 && skipped <= mostSkipped;
  if (isLater && (await readRestoredAt(tx)) !== undefined) checkChannelOpen(channel);
  else checkNextRevision(channel, revision);
}

/** The owner's calling device with its channel. */
interface OwnedChannel {
  readonly caller: Caller;
  readonly channel: StoredChannel;
}

/**
 * Reads calling device and channel and refuses other accounts than the owner.
 *
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`
 */
export async function requireOwner(
  tx: Reader,
  session: DeviceSession,
  { channelId, now }: { readonly channelId: string; readonly now: number },
): Promise<OwnedChannel> {
  const caller = await requireCaller(tx, session, now);
  const channel = await requireChannel(tx, channelId);
  if (channel.creator === session.account) return { caller, channel };
  throw new ProtocolError('forbidden', 'the account is not the owner of the channel');
}

/** Reads the current descriptor, which is always stored. */
export async function currentDescriptor(
  tx: Reader,
  { channelId, revision }: StoredChannel,
): Promise<ChannelDescriptor> {
  const found = await readDescriptor(tx, channelId, revision);
  if (found === undefined) throw new Error(`channel ${channelId} lacks its descriptor`);
  return parseJson(found.descriptor) as unknown as ChannelDescriptor;
}

/**
 * Reads the calling owner's channel with its current descriptor, before what the call signs is
 * verified.
 *
 * @throws ProtocolError as {@link requireOwner}
 */
export async function readOwned(
  { storage }: RelayContext,
  session: DeviceSession,
  at: { readonly channelId: string; readonly now: number },
): Promise<OwnedChannel & { readonly current: ChannelDescriptor }> {
  return await storage.read(async (tx) => {
    const owned = await requireOwner(tx, session, at);
    return { ...owned, current: await currentDescriptor(tx, owned.channel) };
  });
}

/**
 * Puts the next revision into force and appends it (06 §7.2).
 *
 * @param text Canonical JSON of `descriptor`
 * @returns notices to publish after the commit
 */
export async function replaceDescriptor(
  { limits }: RelayContext,
  tx: Writer,
  {
    owned: { caller, channel },
    descriptor,
    text,
    now,
  }: {
    readonly owned: OwnedChannel;
    readonly descriptor: ChannelDescriptor;
    readonly text: string;
    readonly now: number;
  },
): Promise<readonly Notice[]> {
  const { channelId } = channel;
  const { revision, moderators = [], status } = descriptor;
  const head = nextSequence(channel);
  await supersedeDescriptor(tx, channelId, channel);
  await insertEvent(tx, channelId, {
    event: {
      kind: 'descriptor',
      sequence: head,
      descriptorRev: revision,
      acceptedAt: now,
      keepUntil: now + limits.channelTimelineRetention,
      payload: text,
    },
    signer: caller.signer,
  });
  const next = { ...channel, moderators, status, revision, head, neededUntil: 0 };
  await updateChannel(tx, next, Buffer.byteLength(text));
  return [timelineNotice(channelId, head)];
}
