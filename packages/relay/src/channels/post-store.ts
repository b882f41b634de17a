/** All SQL of posts: status, message ID and the state after edits. */
import { type ChannelPost, type PostState, postState } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Reader, Row, Statement, Writer } from '../storage/types.ts';

/** A post to store with its event. */
export interface NewPost {
  readonly sequence: number;
  readonly account: string;
  readonly messageId: string;
  /** Digest of the accepted object. */
  readonly digest: string;
  readonly keepUntil: number;
}

export function insertPost(channelId: string, post: NewPost): Statement {
  return [
    `INSERT INTO channel_posts (channel_id, sequence, account, message_id, digest, status,
        keep_until, clear_after)
      VALUES (?, ?, ?, ?, ?, 'readable', ?, ?)`,
    channelId,
    post.sequence,
    post.account,
    post.messageId,
    post.digest,
    post.keepUntil,
    post.keepUntil,
  ];
}

/** A post that is readable, withheld or stored as deleted. */
export interface StoredPost extends Row {
  sequence: number;
  status: 'readable' | 'deleted';
  /** The post's own deadline, Unix seconds. */
  keep_until: number;
  /** When the operator withheld it, Unix seconds. */
  withheld_at: number | null;
}

export async function readPost(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<StoredPost | undefined> {
  return await tx.get<StoredPost>(
    `SELECT sequence, status, keep_until, withheld_at FROM channel_posts
      WHERE channel_id = ? AND sequence = ?`,
    channelId,
    sequence,
  );
}

/** Reads the state of a readable or withheld post after all edits. */
export async function readPostState(
  tx: Reader,
  channelId: string,
  { sequence, withheld_at }: Pick<StoredPost, 'sequence' | 'withheld_at'>,
): Promise<PostState> {
  const events = withheld_at === null ? 'channel_events' : 'channel_withheld_events';
  const texts = await tx.get<{ payload: string; state: string | null }>(
    `SELECT p.state, CASE WHEN p.state IS NULL THEN e.payload ELSE '' END AS payload
      FROM channel_posts p
      JOIN ${events} e ON e.channel_id = p.channel_id AND e.sequence = p.sequence
      WHERE p.channel_id = ? AND p.sequence = ?`,
    channelId,
    sequence,
  );
  if (texts === undefined) throw new Error(`post ${sequence} lacks its event`);
  const { payload, state } = texts;
  // Faster than `parseJson`: this relay wrote the text, and large states are parsed with every
  // edit.
  if (state !== null) return JSON.parse(state) as PostState;
  return postState(parseJson(payload) as unknown as ChannelPost);
}

export async function setPostState(
  tx: Writer,
  channelId: string,
  { sequence, state }: { readonly sequence: number; readonly state: string },
): Promise<void> {
  await tx.run(
    'UPDATE channel_posts SET state = ? WHERE channel_id = ? AND sequence = ?',
    state,
    channelId,
    sequence,
  );
}

/**
 * Marks a post, withheld or not, as deleted until `clearAfter`; its edits become unreadable.
 */
export async function hidePost(
  tx: Writer,
  channelId: string,
  { sequence, clearAfter }: { readonly sequence: number; readonly clearAfter: number },
): Promise<void> {
  await tx.run(
    `UPDATE channel_posts SET status = 'deleted', state = NULL, withheld_at = NULL, clear_after = ?
      WHERE channel_id = ? AND sequence = ?`,
    clearAfter,
    channelId,
    sequence,
  );
}
