/** What post, edit and delete have in common (06 §8.6). */
import { checkChannelOpen, mayWriteChannel, ProtocolError } from '@posthouse/protocol';
import { type Caller, callerAt, type Look } from '../accounts/index.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { Reader } from '../storage/types.ts';
import { requireChannel, type StoredChannel } from './channel-store.ts';
import { hasOtherEvent } from './event-store.ts';
import { readPost, type StoredPost } from './post-store.ts';

/** A write to the content of a channel by a device that may make it. */
export interface ContentWrite {
  readonly caller: Caller;
  readonly channel: StoredChannel;
}

/**
 * The calling device and the channel, whose current descriptor lets the account write.
 * @throws ProtocolError `unauthorized`, `not_found`, `forbidden`, `state_conflict`
 */
export async function requireWriter(
  tx: Reader,
  session: DeviceSession,
  { channelId, look }: { readonly channelId: string; readonly look: Look },
): Promise<ContentWrite> {
  const caller = await callerAt(tx, session, look);
  const channel = await requireChannel(tx, channelId);
  checkMayWrite(channel, session.account);
  return { caller, channel };
}

/** @throws ProtocolError `forbidden`; `state_conflict` where the channel is closed */
export function checkMayWrite(channel: StoredChannel, account: string): void {
  if (!mayWriteChannel(channel, account)) {
    throw new ProtocolError('forbidden', 'the account is neither owner nor moderator');
  }
  checkChannelOpen(channel);
}

/**
 * The readable post an edit or a report is about (06 §8.8, §8.10). One that the operator withholds
 * is like one that was cleaned up.
 *
 * @throws ProtocolError `bad_request` for an event that is no post, `not_found` for nothing,
 *   `state_conflict` for a post that was deleted
 */
export async function requireTarget(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<StoredPost> {
  const post = await requireKept(tx, channelId, sequence);
  if (post.withheld_at === null) return post;
  throw nothingThere();
}

/** As {@link requireTarget}, withheld or not: what a deletion is about (06 §8.9). */
export async function requireKept(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<StoredPost> {
  const post = await readPost(tx, channelId, sequence);
  if (post?.status === 'readable') return post;
  if (post !== undefined) throw new ProtocolError('state_conflict', 'the post was deleted');
  if (await hasOtherEvent(tx, channelId, sequence)) {
    throw new ProtocolError('bad_request', 'target_sequence: the event is no post');
  }
  throw nothingThere();
}

function nothingThere(): ProtocolError {
  return new ProtocolError('not_found', 'target_sequence: nothing is there');
}
