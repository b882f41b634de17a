import type { Job } from '../context.ts';
import { deleteExpiredStaged, nextStagedDeadline } from './store.ts';

/** Pre-stored states removed in one transaction. */
const portion = 200;

/** Removes pre-stored states whose retention ended (03 section 4.2). */
export const stagedStatesJob: Job = {
  name: 'accounts.staged',
  async run({ clock, storage }, signal) {
    while (!signal.aborted) {
      const now = clock.now();
      const deleted = await storage.write(this.name, (tx) => deleteExpiredStaged(tx, now, portion));
      if (deleted < portion) break;
    }
    return await storage.read(nextStagedDeadline);
  },
};
