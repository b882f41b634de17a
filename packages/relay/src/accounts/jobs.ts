import type { Job } from '../context.ts';
import { forEachAggregate, nextRun } from '../jobs/for-each-aggregate.ts';
import type { AggregateKey } from '../storage/types.ts';
import { expiredDevicesJobName, inactiveDevicesJobName } from './devices.ts';
import {
  type ExpiringDevice,
  markExpired,
  nextDeviceExpiry,
  readExpiredDevices,
  readValidAgain,
  unmarkValid,
} from './inactive-store.ts';
import { deleteEndedValues, nextValueEnd } from './route-value-store.ts';
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
 * Deletes routes that other relays sent and that were not sent again for too long (07 §B5). What is
 * known of their revisions stays for good.
 */
export const routeValuesJob: Job = {
  name: 'accounts.route-values',
  deletes: true,
  async run({ clock, identity, storage }, signal) {
    const { relayId } = identity;
    while (!signal.aborted) {
      const page = { relayId, now: clock.now(), limit: batchSize };
      const deleted = await storage.write(this.name, (tx) => deleteEndedValues(tx, page));
      if (deleted < batchSize) break;
    }
    return await storage.read((tx) => nextValueEnd(tx, relayId));
  },
};

/**
 * Marks devices whose certificate expired as inactive and wakes the job that ends their access; a
 * device that is valid again, since the clock was set back, is found when it expires again. While
 * the clock may be wrong it marks none, as access does not come back: calls are refused anyway.
 */
export const expiredDevicesJob: Job = {
  name: expiredDevicesJobName,
  deletes: true,
  async run(context, signal) {
    const { clock, jobs, storage } = context;
    const now = clock.now();
    const common = { job: expiredDevicesJobName, aggregateOf: accountOf };
    await forEachAggregate(context, signal, {
      ...common,
      task: 'valid again',
      find: (tx, after: ExpiringDevice | undefined) =>
        readValidAgain(tx, { now, after, limit: batchSize }),
      work: async (owner, devices) => {
        await storage.write(owner, async (tx) => {
          for (const device of devices) await unmarkValid(tx, device, now);
        });
      },
    });
    await forEachAggregate(context, signal, {
      ...common,
      task: 'certificates',
      find: (tx, after: ExpiringDevice | undefined) =>
        readExpiredDevices(tx, { now, after, limit: batchSize }),
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

const accountOf = ({ account }: ExpiringDevice): AggregateKey => `account:${account}`;
