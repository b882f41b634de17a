import type { Job } from '../context.ts';
import { secondsOfDay } from './daily-bytes.ts';
import { deleteDaysBefore, firstDay } from './store.ts';

/** Rows removed at once. */
const batchSize = 200;

/** Removes the counts of earlier days. */
export const dailyBytesJob: Job = {
  name: 'usage.daily-bytes',
  deletes: true,
  async run({ clock, storage }, signal) {
    const today = Math.floor(clock.now() / secondsOfDay);
    let deleted = batchSize;
    while (deleted === batchSize && !signal.aborted) {
      deleted = await storage.write(this.name, (tx) => deleteDaysBefore(tx, today, batchSize));
    }
    const first = (await storage.read(firstDay)) ?? today;
    return (Math.max(first, today) + 1) * secondsOfDay;
  },
};
