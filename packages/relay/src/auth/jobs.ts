import type { Job } from '../context.ts';
import { deleteExpired } from './store.ts';

/** Rows in one transaction, and seconds between looks. */
const batchSize = 1_000;
const interval = 60;

/** Removes challenges and sessions whose time has come. They count for nothing before already. */
export const expiryJob: Job = {
  name: 'auth.expiry',
  async run({ storage, clock }, signal) {
    let removed: number;
    do {
      const now = clock.now();
      removed = await storage.write(this.name, (tx) => deleteExpired(tx, now, batchSize));
    } while (removed >= batchSize && !signal.aborted);
    return clock.now() + interval;
  },
};
