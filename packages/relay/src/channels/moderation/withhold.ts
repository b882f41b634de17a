/** Withholds posts from a timeline for the operator, and restores them (06 §7.5, §8.10). */
import { ProtocolError } from '@posthouse/protocol';
import { requireInService } from '../../storage/move/mark.ts';
import type { Reader, Storage, Writer } from '../../storage/types.ts';
import { readPost, type StoredPost } from '../post-store.ts';
import type { EventKey } from '../retention-store.ts';
import { dismissReports } from './reports.ts';
import {
  moveEdits,
  movePost,
  readWithheld,
  setWithheld,
  type WithheldPosition,
  type WithheldPost,
} from './withheld-store.ts';

/** Edits moved in one transaction, so that the relay's own writes come between. */
const batchSize = 200;

/** Result of withholding a post. */
export interface WithholdResult {
  /** False if it was withheld before. */
  readonly isNew: boolean;
  /** Number of dismissed reports about it. */
  readonly reports: number;
}

/**
 * Withholds a post: after the first commit the post and its edits are unreadable; further commits
 * move the edits. If a crash interrupts them, another call completes the move.
 *
 * @param now Unix seconds
 * @throws ProtocolError `not_found` if there is no such post, `invalid_state` if it was deleted; Error
 *   if the database is being moved
 */
export async function withholdPost(
  storage: Storage,
  key: EventKey,
  now: number,
): Promise<WithholdResult> {
  const isNew = await write(storage, key, async (tx) => {
    const post = await requirePost(tx, key);
    if (post.withheld_at !== null) return false;
    await setWithheld(tx, key, now);
    await movePost(tx, 'out', key);
    return true;
  });
  await moveInBatches(storage, key, async (tx) => {
    const post = await readPost(tx, key.channelId, key.sequence);
    // The post may have been deleted meanwhile.
    return post?.withheld_at ? await moveEdits(tx, 'out', { ...key, batchSize }) : 0;
  });
  return { isNew, reports: await dismissReports(storage, key) };
}

/**
 * Restores a withheld post: the last commit makes the post and all its edits readable. If a crash
 * comes before it, the post is still withheld.
 *
 * @throws ProtocolError `not_found`, `invalid_state` if it is not withheld; Error if the database is
 *   being moved
 */
export async function restorePost(storage: Storage, key: EventKey): Promise<void> {
  await moveInBatches(storage, key, async (tx) => {
    const { withheld_at } = await requirePost(tx, key);
    if (withheld_at === null) throw refused(`${nameOf(key)} is not withheld`);
    const moved = await moveEdits(tx, 'back', { ...key, batchSize });
    if (moved === batchSize) return moved;
    await movePost(tx, 'back', key);
    await setWithheld(tx, key, null);
    return moved;
  });
}

/** Reads the posts that are withheld and still stored, the newest first. */
export async function listWithheld(
  storage: Storage,
  range: { readonly before: WithheldPosition; readonly limit: number },
): Promise<WithheldPost[]> {
  return await storage.read((tx) => readWithheld(tx, range));
}

/** Moves edits, one batch in each commit, until `move` returns less than a full batch. */
async function moveInBatches(
  storage: Storage,
  key: EventKey,
  move: (tx: Writer) => Promise<number>,
): Promise<void> {
  while ((await write(storage, key, move)) === batchSize);
}

async function write<T>(
  storage: Storage,
  { channelId }: EventKey,
  work: (tx: Writer) => Promise<T>,
): Promise<T> {
  return await storage.write(`channel:${channelId}`, async (tx) => {
    await requireInService(tx);
    return await work(tx);
  });
}

async function requirePost(tx: Reader, key: EventKey): Promise<StoredPost> {
  const post = await readPost(tx, key.channelId, key.sequence);
  if (post?.status === 'readable') return post;
  if (post !== undefined) throw refused(`${nameOf(key)} was deleted`);
  throw new ProtocolError('not_found', `${nameOf(key)} does not exist`);
}

const refused = (message: string) => new ProtocolError('invalid_state', message);

function nameOf({ channelId, sequence }: EventKey): string {
  return `post ${sequence} of ${channelId}`;
}
