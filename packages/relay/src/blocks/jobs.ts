import type { Job } from '../context.ts';
import { blockEnded } from '../observability/block-events.ts';
import { blockWrites, deleteEnded, readNextEnd } from './block-store.ts';

/** Seconds between two looks for changes: a block is in force everywhere within two. */
const interval = 1;
/** Blocks removed at once. */
const batchSize = 100;

/** Reads, in each process, what the operator changed: by a command, or in another process. */
export const blockChangesJob: Job = {
  name: 'blocks.changes',
  retryAtMost: interval,
  async run({ blocks, clock }) {
    await blocks.refresh();
    return clock.now() + interval;
  },
};

/** Removes blocks that have ended; they count no more from their end on, whether it runs or not. */
export const endedBlocksJob: Job = {
  name: 'blocks.ended',
  deletes: true,
  async run({ clock, log, storage }, signal) {
    for (let hasMore = true; hasMore && !signal.aborted; ) {
      const ended = await storage.write(blockWrites, (tx) =>
        deleteEnded(tx, clock.now(), batchSize),
      );
      for (const { kind, id } of ended) blockEnded({ log }, { kind, id });
      hasMore = ended.length === batchSize;
    }
    return await storage.read(readNextEnd);
  },
};
