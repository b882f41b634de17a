/** How an operator takes a post out of a timeline, and puts it back (06 §7.5, §8.10). */
import { requireInService } from '../../storage/move/mark.ts';
import type { Reader, Storage, Writer } from '../../storage/types.ts';
import { readPost, type StoredPost } from '../post-store.ts';
import type { EventPosition } from '../retention-store.ts';
import { dismissReports } from './reports.ts';
import {
  moveEdits,
  movePost,
  readWithheld,
  setWithheld,
  type WithheldPost,
} from './withheld-store.ts';

/** Edits moved in one transaction: the relay's own writes come between. */
const batchSize = 200;

/** What became of a post that was to be withheld. */
export interface WithholdResult {
  /** False where it was withheld before. */
  readonly isNew: boolean;
  /** Reports about it that were dismissed. */
  readonly reports: number;
}

/**
 * Takes a post out of the timeline. From one commit on nobody reads it or any of its edits; what
 * follows needs no haste. Cut off there, it is completed by being called again.
 *
 * @param now Unix seconds
 * @throws Error where there is no such post, it was deleted, or the database is being moved
 */
export async function withholdPost(
  storage: Storage,
  place: EventPosition,
  now: number,
): Promise<WithholdResult> {
  const isNew = await write(storage, place, async (tx) => {
    const post = await requirePost(tx, place);
    if (post.withheld_at !== null) return false;
    await setWithheld(tx, place, now);
    await movePost(tx, 'out', place);
    return true;
  });
  await moveInBatches(storage, place, async (tx) => {
    const post = await readPost(tx, place.channelId, place.sequence);
    // Who may delete it may have done so meanwhile.
    return post?.withheld_at ? await moveEdits(tx, 'out', { ...place, portion: batchSize }) : 0;
  });
  return { isNew, reports: await dismissReports(storage, place) };
}

/**
 * Puts a withheld post back, with all its edits in one commit: until then none of it is readable.
 * Cut off before, it is withheld still.
 *
 * @throws Error where no such post is withheld, or the database is being moved
 */
export async function restorePost(storage: Storage, place: EventPosition): Promise<void> {
  await moveInBatches(storage, place, async (tx) => {
    const { withheld_at } = await requirePost(tx, place);
    if (withheld_at === null) throw new Error(`${nameOf(place)} is not withheld`);
    const moved = await moveEdits(tx, 'back', { ...place, portion: batchSize });
    if (moved === batchSize) return moved;
    await movePost(tx, 'back', place);
    await setWithheld(tx, place, null);
    return moved;
  });
}

/** Posts that are withheld and still kept, the last one last. */
export async function listWithheld(storage: Storage, most: number): Promise<WithheldPost[]> {
  return await storage.read((tx) => readWithheld(tx, most));
}

/** Moves edits, a portion in each commit, until `move` says that there were fewer. */
async function moveInBatches(
  storage: Storage,
  place: EventPosition,
  move: (tx: Writer) => Promise<number>,
): Promise<void> {
  while ((await write(storage, place, move)) === batchSize);
}

async function write<T>(
  storage: Storage,
  { channelId }: EventPosition,
  work: (tx: Writer) => Promise<T>,
): Promise<T> {
  return await storage.write(`channel:${channelId}`, async (tx) => {
    await requireInService(tx);
    return await work(tx);
  });
}

async function requirePost(tx: Reader, place: EventPosition): Promise<StoredPost> {
  const post = await readPost(tx, place.channelId, place.sequence);
  if (post?.status === 'readable') return post;
  if (post !== undefined) throw new Error(`${nameOf(place)} was deleted`);
  throw new Error(`${nameOf(place)} does not exist`);
}

function nameOf({ channelId, sequence }: EventPosition): string {
  return `post ${sequence} of ${channelId}`;
}
