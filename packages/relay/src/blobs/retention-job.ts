import type { Job } from '../context.ts';
import type { BlobFolder } from './folder.ts';
import { deleteEnded, markDue, readFirstDue } from './store.ts';

/** Blobs of one account that are ended in one transaction. */
const batchSize = 100;

/** Makes the job that deletes blobs whose time is over, and what crashes left of uploads. */
export function blobRetentionJob(folder: BlobFolder): Job {
  return {
    name: 'blobs.retention',
    deletes: true,
    async run({ clock, storage }, signal) {
      for (;;) {
        const first = await storage.read(readFirstDue);
        const now = clock.now();
        if (signal.aborted || first === undefined || first.keepUntil > now) return first?.keepUntil;
        const aggregate = `account:${first.account}`;
        const names = await storage.write(aggregate, (tx) =>
          markDue(tx, first.account, { now, limit: batchSize }),
        );
        for (const name of names) await folder.remove(name);
        await storage.write(aggregate, (tx) => deleteEnded(tx, first.account, names));
      }
    },
  };
}
