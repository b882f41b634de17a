import type { Job, RelayContext } from '../context.ts';
import type { Reader, Writer } from '../storage/types.ts';
import {
  deleteDeletions,
  deleteDescriptors,
  deleteDueReports,
  deleteHiddenEdits,
  deletePosts,
  nextRetentionDeadline,
  type Position,
  readDueEvents,
  readDuePosts,
  readHiddenPosts,
} from './retention-store.ts';

/** Rows removed in one transaction. */
const portion = 200;

/** Whoever hides a post wakes it. */
export const retentionJobName = 'channels.retention';

/**
 * Removes what has been kept as long as was promised at its acceptance, and the edits of posts that
 * nobody reads any more (06 §7.5). Descriptors go last: what needs them is gone by then.
 */
export const retentionJob: Job = {
  name: retentionJobName,
  async run(context, signal) {
    const { clock, storage } = context;
    const now = clock.now();
    const due = { now, portion };
    await eachChannel(context, signal, {
      find: (tx) => readDuePosts(tx, now, portion),
      remove: (tx, channelId, sequences) => deletePosts(tx, channelId, { sequences, now }),
    });
    await eachChannel(context, signal, {
      find: (tx) => readHiddenPosts(tx, portion),
      remove: (tx, channelId, sequences) =>
        deleteHiddenEdits(tx, channelId, { sequences, portion }),
    });
    await eachChannel(context, signal, {
      find: (tx) => readDueEvents(tx, 'delete', due),
      remove: (tx, channelId, sequences) => deleteDeletions(tx, channelId, { sequences, now }),
    });
    await eachChannel(context, signal, {
      find: (tx) => readDueEvents(tx, 'descriptor', due),
      remove: (tx, channelId, sequences) => deleteDescriptors(tx, channelId, { sequences, now }),
    });
    await removeReports(context, signal, now);
    const next = await storage.read(nextRetentionDeadline);
    // What became due meanwhile, or could not go yet, has its turn a moment later.
    return next && Math.max(next, now + 1);
  },
};

/** Something to remove, and how it goes, in a write of its channel. */
interface Step {
  readonly find: (tx: Reader) => Promise<Position[]>;
  readonly remove: (tx: Writer, channelId: string, sequences: number[]) => Promise<number>;
}

/** Until nothing is found that can go. */
async function eachChannel(
  { storage }: RelayContext,
  signal: AbortSignal,
  { find, remove }: Step,
): Promise<void> {
  for (;;) {
    const found = await storage.read(find);
    let count = 0;
    for (const [channelId, some] of Map.groupBy(found, (one) => one.channelId)) {
      if (signal.aborted) return;
      const sequences = some.map(({ sequence }) => sequence);
      count += await storage.write(`channel:${channelId}`, (tx) =>
        remove(tx, channelId, sequences),
      );
    }
    if (count === 0) return;
  }
}

async function removeReports(
  { storage }: RelayContext,
  signal: AbortSignal,
  now: number,
): Promise<void> {
  while (!signal.aborted) {
    const count = await storage.write('channels.jobs', (tx) => deleteDueReports(tx, now, portion));
    if (count === 0) return;
  }
}
