import type { Job, RelayContext } from '../context.ts';
import type { Writer } from '../storage/types.ts';
import {
  deleteExpiredRecords,
  deleteExpiredResults,
  deleteExpiredTexts,
  nextDeadline,
} from './retention-store.ts';

/** Rows of a kind removed in one transaction. */
const portion = 200;

/** Removes what has been kept as long as was promised at its acceptance (04 §15.2, §17.4). */
export const retentionJob: Job = {
  name: 'messages.retention',
  async run(context, signal) {
    // Records before the texts they show.
    for (const remove of [deleteExpiredRecords, deleteExpiredResults, deleteExpiredTexts]) {
      await inPortions(context, signal, remove);
    }
    return await context.storage.read(nextDeadline);
  },
};

async function inPortions(
  { clock, storage }: RelayContext,
  signal: AbortSignal,
  remove: (tx: Writer, now: number, portion: number) => Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    const now = clock.now();
    const removed = await storage.write('relay', (tx) => remove(tx, now, portion));
    if (removed < portion) return;
  }
}
