import type { Job } from '../context.ts';
import type { Storage, Writer } from '../storage/types.ts';
import {
  deleteExpiredRecords,
  deleteExpiredResults,
  deleteExpiredTexts,
  nextDeadline,
} from './retention-store.ts';

/** Rows of a kind removed in one transaction. */
const batchSize = 200;

/** Removes everything whose deadline, fixed at its acceptance, has passed (04 §15.2, §17.4). */
export const retentionJob: Job = {
  name: 'messages.retention',
  deletes: true,
  async run(context, signal) {
    // Records before the texts they refer to, both for one instant: a record that expires during
    // the run still needs its texts.
    const now = context.clock.now();
    for (const remove of [deleteExpiredRecords, deleteExpiredResults, deleteExpiredTexts]) {
      await inBatches(context.storage, signal, (tx) => remove(tx, now, batchSize));
    }
    return await context.storage.read(nextDeadline);
  },
};

async function inBatches(
  storage: Storage,
  signal: AbortSignal,
  remove: (tx: Writer) => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    if ((await storage.write(retentionJob.name, remove)) < batchSize) return;
  }
}
