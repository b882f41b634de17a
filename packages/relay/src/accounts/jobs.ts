import type { Job } from '../context.ts';
import { expiredDevicesJobName, inactiveDevicesJob } from './devices.ts';
import { nextDeviceExpiry, noteExpired, readExpiredDevices } from './inactive-store.ts';
import { deleteExpiredStaged, nextStagedDeadline } from './store.ts';

/** Pre-stored states removed in one transaction. */
const portion = 200;

/** Devices noted in one transaction, with as many accounts held. */
const devicesAtOnce = 50;

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

/** Notes devices whose certificate expired without renewal, for who must end their access. */
export const expiredDevicesJob: Job = {
  name: expiredDevicesJobName,
  async run({ clock, jobs, storage }, signal) {
    while (!signal.aborted) {
      const now = clock.now();
      const expired = await storage.read((tx) => readExpiredDevices(tx, now, devicesAtOnce));
      if (expired.length === 0) break;
      // A renewal comes before, and there is nothing to note, or behind.
      const aggregates = expired.map(({ account }) => `account:${account}`);
      await storage.write(aggregates, async (tx) => {
        for (const device of expired) await noteExpired(tx, device, now);
      });
      jobs.wake(inactiveDevicesJob);
    }
    return await storage.read(nextDeviceExpiry);
  },
};
