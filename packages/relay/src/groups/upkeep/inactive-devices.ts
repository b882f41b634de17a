/** Revokes the access of devices that are no longer valid, group by group (05 §7.3, §10.3). */
import {
  type DeviceKey,
  inactiveDevicesJobName,
  isMarkedInactive,
  readInactive,
  unmarkInactive,
} from '../../accounts/index.ts';
import type { Job, RelayContext } from '../../context.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import type { Reader } from '../../storage/types.ts';
import { readOpenGroups } from '../chain/access-store.ts';
import { revokeStaleAccess } from '../chain/stale-access.ts';

/** Devices, and groups of one device, that are read at once. */
const batchSize = 50;

/**
 * Revokes the access of the devices that `accounts/` marked as inactive, in the commit that made
 * them so or when their certificate had expired. If a run is cut off anywhere, the next run finds
 * the rest. A call in a group does not wait for this job: it revokes stale access itself.
 */
export const inactivityJob: Job = {
  name: inactiveDevicesJobName,
  async run(context, signal) {
    await forEachAggregate(context, signal, {
      job: inactiveDevicesJobName,
      task: 'devices',
      find: (tx, after: DeviceKey | undefined) => readInactive(tx, { after, limit: batchSize }),
      aggregateOf: ({ account }) => `account:${account}`,
      work: async (_, devices) => {
        for (const device of devices) await revokeDevice(context, device, signal);
      },
    });
    return nextRun(context, inactiveDevicesJobName, undefined);
  },
};

async function revokeDevice(
  context: RelayContext,
  device: DeviceKey,
  signal: AbortSignal,
): Promise<void> {
  const { backoff } = context;
  do {
    await forEachAggregate(context, signal, {
      job: inactiveDevicesJobName,
      task: `access of ${device.deviceId}`,
      find: (tx, after: string | undefined) => readGroupsToRevoke(tx, device, after),
      aggregateOf: (groupId) => `group:${groupId}`,
      work: (_, [groupId]) => revokeStaleAccess(context, groupId, [device]),
    });
    if (signal.aborted || (await forgetIfDone(context, device))) return;
    // A group that failed is tried again later, and the device with it.
  } while (backoff.nextRetry(inactiveDevicesJobName) === undefined);
}

/** Reads none for a device that is valid again: its access continues if nothing has happened. */
async function readGroupsToRevoke(tx: Reader, device: DeviceKey, after = ''): Promise<string[]> {
  if (!(await isMarkedInactive(tx, device))) return [];
  return await readOpenGroups(tx, device, { after, limit: batchSize });
}

/** Forgets a device without open access. Intervals open with the account held: none is missed. */
async function forgetIfDone({ storage }: RelayContext, device: DeviceKey): Promise<boolean> {
  return await storage.write(`account:${device.account}`, async (tx) => {
    if ((await readGroupsToRevoke(tx, device)).length > 0) return false;
    await unmarkInactive(tx, device);
    return true;
  });
}
