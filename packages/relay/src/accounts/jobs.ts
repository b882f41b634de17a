import type { Job } from '../context.ts';
import { forEachAggregate, nextRun } from '../jobs/for-each-aggregate.ts';
import { expiredDevicesJobName, inactiveDevicesJobName } from './devices.ts';
import {
  type ExpiredDevice,
  markExpired,
  nextDeviceExpiry,
  readExpiredDevices,
} from './inactive-store.ts';
import { deleteExpiredStaged, nextStagedDeadline } from './staged-store.ts';

/** Rows read or removed at once. */
const batchSize = 200;

/** Removes pre-stored states whose retention ended (03 section 4.2). */
export const stagedStatesJob: Job = {
  name: 'accounts.staged',
  deletes: true,
  async run({ clock, storage }, signal) {
    while (!signal.aborted) {
      const now = clock.now();
      const deleted = await storage.write(this.name, (tx) =>
        deleteExpiredStaged(tx, now, batchSize),
      );
      if (deleted < batchSize) break;
    }
    return await storage.read(nextStagedDeadline);
  },
};

/**
 * Marks devices whose certificate expired as inactive and wakes the job that ends their access. It
 * also runs while the clock may be wrong: access that should have ended does not wait for that.
 */
export const expiredDevicesJob: Job = {
  name: expiredDevicesJobName,
  async run(context, signal) {
    const { clock, jobs, storage } = context;
    const now = clock.now();
    await forEachAggregate(context, signal, {
      job: expiredDevicesJobName,
      task: 'certificates',
      find: (tx, after: ExpiredDevice | undefined) =>
        readExpiredDevices(tx, { now, after, limit: batchSize }),
      aggregateOf: ({ account }) => `account:${account}`,
      // A renewal locks the account too: it comes before, and nothing is marked, or after.
      work: async (owner, devices) => {
        await storage.write(owner, async (tx) => {
          for (const device of devices) await markExpired(tx, device, now);
        });
        jobs.wake(inactiveDevicesJobName);
      },
    });
    const next = await storage.read((tx) => nextDeviceExpiry(tx, now));
    return nextRun(context, expiredDevicesJobName, next);
  },
};
