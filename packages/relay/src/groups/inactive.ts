/** Ends the access of devices that are not valid any more (05 §7.3, §10.3). */
import {
  canonicalJson,
  createKeyRotated,
  type Network,
  nextGroupPosition,
} from '@posthouse/protocol';
import {
  currentDevice,
  type DeviceOf,
  forgetInactive,
  inactiveDevicesJob,
  readInactive,
} from '../accounts/index.ts';
import type { Notice } from '../call.ts';
import type { Job, RelayContext } from '../context.ts';
import { eachOwner, nextRun } from '../jobs/owners.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { closeInterval, readIntervals, readOpenGroups } from './access-store.ts';
import { beginEpoch } from './apply.ts';
import { insertEvent } from './event-store.ts';
import { readGroup, type StoredGroup, updateGroup } from './group-store.ts';
import { timelineNotice } from './notices.ts';

/** Devices, and groups of one, that are read at once. */
const portion = 50;

/**
 * Takes the devices that `accounts/` noted as inactive, in the commit that made them so or when
 * their certificate had expired. What is done is done group by group; cut off anywhere, the next
 * run finds what is left.
 */
export const inactivityJob: Job = {
  name: inactiveDevicesJob,
  async run(context, signal) {
    await eachOwner(context, signal, {
      job: inactiveDevicesJob,
      task: 'devices',
      find: (tx, after: DeviceOf | undefined) => readInactive(tx, { after, most: portion }),
      ownerOf: ({ account }) => `account:${account}`,
      work: async (_, devices) => {
        for (const device of devices) await endDevice(context, device, signal);
      },
    });
    return nextRun(context, inactiveDevicesJob, undefined);
  },
};

async function endDevice(
  context: RelayContext,
  device: DeviceOf,
  signal: AbortSignal,
): Promise<void> {
  const { bus, clock, setbacks, storage } = context;
  do {
    await eachOwner(context, signal, {
      job: inactiveDevicesJob,
      task: `access of ${device.deviceId}`,
      find: (tx, after: string | undefined) => groupsToEnd(tx, device, { after, now: clock.now() }),
      ownerOf: (groupId) => `group:${groupId}`,
      work: async (owner, [groupId]) => {
        const work = (tx: Writer) => endInGroup(context, tx, { groupId, device });
        bus.publish(await storage.write(owner, work));
      },
    });
    if (signal.aborted || (await isOver(context, device))) return;
    // A group that failed has its turn again, and the device with it.
  } while (setbacks.nextRetry(inactiveDevicesJob) === undefined);
}

/** None for a device that is valid again: a renewal without a gap keeps its intervals. */
async function groupsToEnd(
  tx: Reader,
  device: DeviceOf,
  { after = '', now }: { readonly after?: string | undefined; readonly now: number },
): Promise<string[]> {
  if (await isValid(tx, device, now)) return [];
  return await readOpenGroups(tx, device, { after, most: portion });
}

async function isValid(tx: Reader, { account, deviceId }: DeviceOf, now: number): Promise<boolean> {
  return (await currentDevice(tx, account, deviceId, now)) !== undefined;
}

/** Intervals open with the account held, so that none is missed here. */
async function isOver({ clock, storage }: RelayContext, device: DeviceOf): Promise<boolean> {
  return await storage.write(`account:${device.account}`, async (tx) => {
    if ((await groupsToEnd(tx, device, { now: clock.now() })).length > 0) return false;
    await forgetInactive(tx, device);
    return true;
  });
}

/** Closes the device's interval; a relay secret it holds is replaced, if it is the current one. */
async function endInGroup(
  { clock, limits, network, random }: RelayContext,
  tx: Writer,
  { groupId, device }: { readonly groupId: string; readonly device: DeviceOf },
): Promise<readonly Notice[]> {
  const now = clock.now();
  if (await isValid(tx, device, now)) return [];
  const group = await readGroup(tx, groupId);
  const intervals = await readIntervals(tx, groupId, device);
  const interval = intervals.find(({ messages }) => messages.to === undefined);
  if (group === undefined || interval === undefined) return [];
  await closeInterval(tx, groupId, { ...device, at: group });
  const holdsSecret = interval.deliveredEpoch === group.epoch;
  const next = holdsSecret ? rotated(group) : undefined;
  if (next === undefined) {
    // Whoever was confirmed before the next event is looked up again: the device was one of them.
    const following = Math.min(group.sequence + 1, Number.MAX_SAFE_INTEGER);
    await updateGroup(tx, { ...group, access_ended: following });
    return [];
  }
  await insertEvent(tx, groupId, { event: rotationEvent(network, next, now), signer: undefined });
  await beginEpoch(tx, next, now, { random, limits });
  await updateGroup(tx, next);
  return [timelineNotice(next)];
}

/** The group behind a rotation; `undefined` where nothing can be appended any more. */
function rotated(group: StoredGroup): StoredGroup | undefined {
  if (group.status !== 'active') return undefined;
  try {
    const position = nextGroupPosition(group, { advancesEpoch: true });
    return { ...group, ...position, access_ended: position.sequence };
  } catch {
    return undefined;
  }
}

function rotationEvent(network: Network, { sequence, epoch }: StoredGroup, now: number) {
  const payload = canonicalJson(createKeyRotated(network));
  return { sequence, epoch, acceptedAt: now, payload };
}
