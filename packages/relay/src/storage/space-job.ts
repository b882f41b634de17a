import type { Job } from '../context.ts';
import { databaseMeasured } from '../observability/storage-events.ts';

/** Seconds until the database's size is read again. */
const interval = 60;

/**
 * Measures the database, and gives room that it does not use back to the disk: one small step a run,
 * and the next run at once while there is more, so that calls come between.
 */
export const spaceJob: Job = {
  name: 'storage.space',
  async run({ clock, metrics, storage }) {
    if (await storage.reclaim()) return clock.now();
    databaseMeasured({ metrics }, await storage.space());
    return clock.now() + interval;
  },
};
