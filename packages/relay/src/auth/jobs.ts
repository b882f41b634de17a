import type { Job } from '../context.ts';
import { deleteExpired } from './store.ts';

/** Rows removed in one transaction, and seconds between runs. */
const batchSize = 1_000;
const interval = 60;

/**
 * Removes expired challenges and sessions. Expired rows are never accepted, removed or not. It does not
 * pause while the clock may be wrong: clients sign in again by themselves, and strangers who ask for
 * challenges must not fill the disk meanwhile.
 */
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
