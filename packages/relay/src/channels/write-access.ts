/** Checks of rights and targets, shared by post, edit, delete and report (06 §8.6). */
import { checkChannelOpen, mayWriteChannel, ProtocolError } from '@posthouse/protocol';
import type { Caller, CallingDevice } from '../accounts/index.ts';
import type { Reader } from '../storage/types.ts';
import { requireChannel, type StoredChannel } from './channel-store.ts';
import { hasOtherEvent } from './event-store.ts';
import { readPost, type StoredPost } from './post-store.ts';

/** A calling device that may write to a channel. */
export interface AdmittedWriter {
  readonly caller: Caller;
  readonly channel: StoredChannel;
}

/**
 * Reads the channel and checks that the calling device's account may write to it.
 * @throws ProtocolError `not_found`, `forbidden`, `state_conflict`
 */
export async function requireWriter(
  tx: Reader,
  channelId: string,
  { caller }: CallingDevice,
): Promise<AdmittedWriter> {
  const channel = await requireChannel(tx, channelId);
  checkMayWrite(channel, caller.account);
  return { caller, channel };
}

/** @throws ProtocolError `forbidden`; `state_conflict` if the channel is closed */
export function checkMayWrite(channel: StoredChannel, account: string): void {
  if (!mayWriteChannel(channel, account)) {
    throw new ProtocolError('forbidden', 'the account is neither owner nor moderator');
  }
  checkChannelOpen(channel);
}

/**
 * Reads the target of an edit or a report, a readable post (06 §8.8, §8.10). A withheld post is
 * treated like a removed one.
 *
 * @throws ProtocolError `bad_request` for an event that is no post, `not_found` for nothing,
 *   `state_conflict` for a post that was deleted
 */
export async function requireReadablePost(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<StoredPost> {
  const post = await requireStoredPost(tx, channelId, sequence);
  if (post.withheld_at === null) return post;
  throw noPost();
}

/** As {@link requireReadablePost}, withheld or not: the target of a deletion (06 §8.9). */
export async function requireStoredPost(
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
  throw noPost();
}

function noPost(): ProtocolError {
  return new ProtocolError('not_found', 'target_sequence: there is no such post');
}
