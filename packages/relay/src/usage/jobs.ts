import type { Job } from '../context.ts';
import { firstCountedDay, secondsOfDay } from './days.ts';
import { deleteDaysBefore, firstDay } from './store.ts';

/** Rows removed at once. */
const batchSize = 200;

/** Removes the counts of days that no total needs any more. */
export const dailyBytesJob: Job = {
  name: 'usage.daily-bytes',
  deletes: true,
  async run({ clock, limits, storage }, signal) {
    const first = firstCountedDay(limits, clock.now());
    let deleted = batchSize;
    while (deleted === batchSize && !signal.aborted) {
      deleted = await storage.write(this.name, (tx) => deleteDaysBefore(tx, first, batchSize));
    }
    const kept = (await storage.read(firstDay)) ?? Number.POSITIVE_INFINITY;
    // Each day one day more is due, if it has counts.
    const today = Math.floor(clock.now() / secondsOfDay);
    return (today + 1 + Math.max(0, Math.min(kept, today) - first)) * secondsOfDay;
  },
};
