/** Ends the access of devices that are not valid any more (05 §7.3, §10.3). */
import { createKeyRotated, type Network, nextGroupPosition } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import {
  type DeviceKey,
  inactiveDevicesJobName,
  isMarkedInactive,
  readInactive,
  unmarkInactive,
} from '../../accounts/index.ts';
import type { Job, RelayContext } from '../../context.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { forEachAggregate, nextRun } from '../../jobs/for-each-aggregate.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { closeInterval, readIntervals, readOpenGroups } from '../chain/access-store.ts';
import { beginEpoch } from '../chain/apply-event.ts';
import { insertEvent } from '../chain/event-store.ts';
import { readGroup, type StoredGroup, updateGroup } from '../chain/group-store.ts';
import { timelineNotice } from '../chain/notices.ts';

/** Devices, and groups of one, that are read at once. */
const portion = 50;

/**
 * Takes the devices that `accounts/` noted as inactive, in the commit that made them so or when
 * their certificate had expired. What is done is done group by group; cut off anywhere, the next
 * run finds what is left. A call in a group does not wait for that turn: see `settled.ts`.
 */
export const inactivityJob: Job = {
  name: inactiveDevicesJobName,
  async run(context, signal) {
    await forEachAggregate(context, signal, {
      job: inactiveDevicesJobName,
      task: 'devices',
      find: (tx, after: DeviceKey | undefined) => readInactive(tx, { after, most: portion }),
      ownerOf: ({ account }) => `account:${account}`,
      work: async (_, devices) => {
        for (const device of devices) await endDevice(context, device, signal);
      },
    });
    return nextRun(context, inactiveDevicesJobName, undefined);
  },
};

async function endDevice(
  context: RelayContext,
  device: DeviceKey,
  signal: AbortSignal,
): Promise<void> {
  const { backoff } = context;
  do {
    await forEachAggregate(context, signal, {
      job: inactiveDevicesJobName,
      task: `access of ${device.deviceId}`,
      find: (tx, after: string | undefined) => groupsToEnd(tx, device, after),
      ownerOf: (groupId) => `group:${groupId}`,
      work: (_, [groupId]) => endAccessIn(context, { groupId, devices: [device] }),
    });
    if (signal.aborted || (await isOver(context, device))) return;
    // A group that failed has its turn again, and the device with it.
  } while (backoff.nextRetry(inactiveDevicesJobName) === undefined);
}

/** Ends what inactive devices have in a group; what a call does itself that comes before the job. */
export async function endAccessIn(
  context: RelayContext,
  { groupId, devices }: { readonly groupId: string; readonly devices: readonly DeviceKey[] },
): Promise<void> {
  const { bus, storage } = context;
  for (const device of devices) {
    const work = (tx: Writer) => endInGroup(context, tx, { groupId, device });
    bus.publish(await storage.write(`group:${groupId}`, work));
  }
}

/** None for a device that is valid again: what nothing has happened in goes on. */
async function groupsToEnd(tx: Reader, device: DeviceKey, after = ''): Promise<string[]> {
  if (!(await isMarkedInactive(tx, device))) return [];
  return await readOpenGroups(tx, device, { after, most: portion });
}

/** Intervals open with the account held, so that none is missed here. */
async function isOver({ storage }: RelayContext, device: DeviceKey): Promise<boolean> {
  return await storage.write(`account:${device.account}`, async (tx) => {
    if ((await groupsToEnd(tx, device)).length > 0) return false;
    await unmarkInactive(tx, device);
    return true;
  });
}

/** Closes the device's interval; a relay secret it holds is replaced, if it is the current one. */
async function endInGroup(
  { clock, limits, network, random }: RelayContext,
  tx: Writer,
  { groupId, device }: { readonly groupId: string; readonly device: DeviceKey },
): Promise<readonly Notice[]> {
  if (!(await isMarkedInactive(tx, device))) return [];
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
  const now = clock.now();
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
