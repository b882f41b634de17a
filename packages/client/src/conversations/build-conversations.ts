/** Builds the conversations of a store that an earlier version wrote: once, in bounded steps. */
import { channelRows } from '../channels/channel-rows.ts';
import { placeStoredPosts } from '../channels/timeline/channel-entries.ts';
import type { AccountCore } from '../core.ts';
import { groupRows } from '../groups/group-rows.ts';
import { placeStoredGroupMessages } from '../groups/timeline/group-entries.ts';
import { placeStoredMessages } from '../messages/message-rows.ts';
import { Collection } from '../store/collection.ts';
import type { Store, StoreReader, StoreWriter } from '../store/index.ts';
import { hideConversation, openConversation } from './conversation-rows.ts';

/** Rows read in one transaction. */
const batchSize = 500;

const stages = [placeStoredMessages, placeStoredGroupMessages, placeStoredPosts];

/** How far the store is built: key `stage`. */
const progress = new Collection<Progress>('conversations-built');

/** When a group was joined is not known; it was before anything that arrives from now on. */
const joinedBefore = { since: 0 };

const built = new WeakSet<Store>();

/**
 * Makes sure that all stored messages belong to their conversations. Messages that are stored
 * meanwhile are added by themselves; a crash leaves the steps before it.
 */
export async function buildConversations(core: AccountCore): Promise<void> {
  if (built.has(core.store)) return;
  // Read first: a transaction that writes waits for the disk, and nearly every store is built.
  let isReady = isDone(await core.store.read(progressOf));
  while (!isReady) isReady = await core.store.write((tx) => buildBatch(core, tx));
  built.add(core.store);
}

/** Stores that a store without an account has nothing to build: its messages all come later. */
export async function skipBuilding(tx: StoreWriter): Promise<void> {
  await progress.put(tx, 'stage', { stage: stages.length + 1, after: '' });
}

interface Progress {
  readonly stage: number;
  /** The last key of the stage that is done. */
  readonly after: string;
}

async function progressOf(tx: StoreReader): Promise<Progress> {
  return (await progress.get(tx, 'stage')) ?? { stage: 0, after: '' };
}

function isDone({ stage }: Progress): boolean {
  return stage > stages.length;
}

/** @returns whether nothing is left to build */
async function buildBatch(core: AccountCore, tx: StoreWriter): Promise<boolean> {
  const done = await progressOf(tx);
  const { stage, after } = done;
  if (isDone(done)) return true;
  const next = await stages[stage]?.(core, tx, { after, limit: batchSize });
  if (stage === stages.length) await listJoined(core, tx);
  await progress.put(
    tx,
    'stage',
    next === undefined ? { stage: stage + 1, after: '' } : { stage, after: next },
  );
  return false;
}

/** Lists what the account is a member of or follows, and hides what it forgot or follows no more. */
async function listJoined(core: AccountCore, tx: StoreWriter): Promise<void> {
  for (const { group_id: id, standing, isForgotten } of await groupRows(tx)) {
    if (isForgotten) await hideConversation(tx, { kind: 'group', id });
    else if (standing === 'member')
      await openConversation(core, tx, { kind: 'group', id }, joinedBefore);
  }
  for (const { channel_id: id, standing } of await channelRows(tx)) {
    if (standing === 'followed')
      await openConversation(core, tx, { kind: 'channel', id }, joinedBefore);
    else await hideConversation(tx, { kind: 'channel', id });
  }
}
