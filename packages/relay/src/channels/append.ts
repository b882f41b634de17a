/** Appends events to a channel's timeline and moves its head. */
import { ProtocolError } from '@posthouse/protocol';
import type { Signer } from '../accounts/index.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { Writer } from '../storage/types.ts';
import { type StoredChannel, updateChannel } from './channel-store.ts';
import { insertEvent, type NewEvent } from './event-store.ts';

/**
 * Returns the next sequence (06 §5.1).
 *
 * @throws ProtocolError `state_conflict` if no safe integer follows (01 I3)
 */
export function nextSequence({ head }: StoredChannel): number {
  if (head < Number.MAX_SAFE_INTEGER) return head + 1;
  throw new ProtocolError('state_conflict', 'the sequences are exhausted');
}

/** Makes the notice of a new event, for every connection that subscribed the channel (06 §9.2). */
export function timelineNotice(channel: string, head: number): Notice {
  return { kind: 'channel-timeline', channel, head };
}

/**
 * Appends a post, an edit or a deletion, which needs the current descriptor until `neededUntil`.
 *
 * @returns notices to publish after the commit
 */
export async function appendContent(
  tx: Writer,
  channel: StoredChannel,
  content: {
    readonly event: Omit<NewEvent, 'descriptorRev'>;
    readonly signer: Signer;
    readonly neededUntil: number;
  },
): Promise<readonly Notice[]> {
  const { channelId, revision } = channel;
  const { event, signer } = content;
  await insertEvent(tx, channelId, { event: { ...event, descriptorRev: revision }, signer });
  const neededUntil = Math.max(channel.neededUntil, content.neededUntil);
  const next = { ...channel, head: event.sequence, neededUntil };
  await updateChannel(tx, next, Buffer.byteLength(event.payload));
  return [timelineNotice(channelId, event.sequence)];
}
