/** Access of devices that are no longer valid, which no job has ended yet (05 §7.3, §10.3). */
import { createKeyRotated, type Network, nextGroupPosition } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import {
  type DeviceKey,
  inactiveDevices,
  isMarkedInactive,
  readInactive,
} from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Notice } from '../../dispatch/notice.ts';
import type { BatchWriter, Reader, Row, SyncWriter, Writer } from '../../storage/types.ts';
import { closeInterval, openDevices, readIntervals, readOpenDevices } from './access-store.ts';
import { beginEpoch } from './apply-event.ts';
import { insertEvent } from './event-store.ts';
import { readGroup, type StoredGroup, updateGroup } from './group-store.ts';
import { timelineNotice } from './notices.ts';

/** Inactive devices that a call checks. The job begins with the same, so the rest follows soon. */
const batchSize = 50;

/**
 * Reads which inactive devices still have open access to a group. Nothing else may happen there
 * before it has ended: an event must not fall into the interval of a device that is not valid.
 */
export async function readStaleAccess(tx: Reader, groupId: string): Promise<readonly DeviceKey[]> {
  const marked = await readInactive(tx, { after: undefined, limit: batchSize });
  return marked.length === 0
    ? []
    : openOf(marked, await readOpenDevices(tx, groupId, accountsOf(marked)));
}

/** Tells in an append whether {@link readStaleAccess} would find any. */
export function hasStaleAccess(tx: SyncWriter, groupId: string): boolean {
  const marked = tx.all<DeviceKey & Row>(
    ...inactiveDevices({ after: undefined, limit: batchSize }),
  );
  if (marked.length === 0) return false;
  return (
    openOf(marked, tx.all<DeviceKey & Row>(...openDevices(groupId, accountsOf(marked)))).length > 0
  );
}

/** Tells in a batch of appends for which groups {@link readStaleAccess} would find any. */
export async function findStaleGroups(
  tx: BatchWriter,
  groupIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.all<{ group_id: string }>(
    `SELECT i.group_id FROM (
        SELECT account, device_id FROM inactive_devices ORDER BY account, device_id LIMIT ?
      ) AS d
      JOIN group_intervals i ON i.account = d.account AND i.device_id = d.device_id
      WHERE i.message_to IS NULL AND i.group_id = ANY (?::text[])`,
    batchSize,
    groupIds,
  );
  return new Set(rows.map(({ group_id }) => group_id));
}

function accountsOf(devices: readonly DeviceKey[]): string[] {
  return [...new Set(devices.map(({ account }) => account))];
}

/** Returns the marked devices that are among the open ones. */
function openOf(marked: readonly DeviceKey[], open: readonly DeviceKey[]): DeviceKey[] {
  return marked.filter(({ account, deviceId }) =>
    open.some((device) => device.account === account && device.deviceId === deviceId),
  );
}

/**
 * Revokes the access of inactive devices to a group, each device in a transaction of its own, and
 * publishes what followed. A device that is valid again keeps its access.
 */
export async function revokeStaleAccess(
  context: RelayContext,
  groupId: string,
  devices: readonly DeviceKey[],
): Promise<void> {
  const { bus, storage } = context;
  for (const device of devices) {
    const revoke = (tx: Writer) => revokeAccess(context, tx, { groupId, device });
    bus.publish(await storage.write(`group:${groupId}`, revoke));
  }
}

/** Closes the device's interval; if the device was given the current relay secret, replaces it. */
async function revokeAccess(
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
  const next = holdsSecret ? afterRotation(group) : undefined;
  if (next === undefined) {
    // Connections confirmed before the next event are checked again: the device may have one.
    const following = Math.min(group.sequence + 1, Number.MAX_SAFE_INTEGER);
    await updateGroup(tx, { ...group, access_ended: following }, 0);
    return [];
  }
  const now = clock.now();
  const event = rotationEvent(network, next, now);
  await insertEvent(tx, groupId, { event, signer: undefined });
  await beginEpoch(tx, next, now, { random, limits });
  await updateGroup(tx, next, Buffer.byteLength(event.payload));
  return [timelineNotice(next)];
}

/** The group after a rotation by the relay; `undefined` if nothing can be appended any more. */
function afterRotation(group: StoredGroup): StoredGroup | undefined {
  if (group.status !== 'active') return undefined;
  try {
    const position = nextGroupPosition(group, { advancesEpoch: true });
    return { ...group, ...position, access_ended: position.sequence };
  } catch {
    return undefined;
  }
}

/** Makes the event of a rotation by the relay, at the position of the group after it. */
export function rotationEvent(
  network: Network,
  { sequence, epoch }: Pick<StoredGroup, 'sequence' | 'epoch'>,
  now: number,
) {
  const payload = canonicalJson(createKeyRotated(network));
  return { sequence, epoch, acceptedAt: now, payload };
}
