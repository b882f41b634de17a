/** All SQL of the access intervals of devices (05 §10). */
import type { DeviceAccess, TimelinePosition } from '@posthouse/protocol';
import { placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Statement, Writer } from '../../storage/types.ts';

/** A device of an account in a group. */
export interface DeviceKey {
  readonly account: string;
  readonly deviceId: string;
}

/** An interval that has authority, with what was delivered to its device in it. */
export interface StoredInterval extends DeviceAccess {
  readonly authority: true;
  /** Newest epoch whose relay secret was delivered to the device; -1 for none. */
  readonly deliveredEpoch: number;
}

interface IntervalRow extends Row {
  message_from: number;
  message_to: number | null;
  key_from: number;
  key_to: number | null;
  delivered_epoch: number | null;
}

/**
 * Reads the intervals of a device that have authority, in the order of their starts. Of others there may
 * be any number: each time the account leaves and joins again leaves one.
 */
export async function readIntervals(
  tx: Reader,
  groupId: string,
  { account, deviceId }: DeviceKey,
): Promise<StoredInterval[]> {
  const rows = await tx.all<IntervalRow>(
    `SELECT message_from, message_to, key_from, key_to, delivered_epoch
      FROM group_intervals WHERE group_id = ? AND account = ? AND device_id = ? AND authority = 1
      ORDER BY message_from`,
    groupId,
    account,
    deviceId,
  );
  return rows.map((row) => ({
    messages: range(row.message_from, row.message_to),
    keys: range(row.key_from, row.key_to),
    authority: true,
    deliveredEpoch: row.delivered_epoch ?? -1,
  }));
}

/** Reads groups in which a device has an open interval, after one of them, in the order of IDs. */
export async function readOpenGroups(
  tx: Reader,
  { account, deviceId }: DeviceKey,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string[]> {
  const rows = await tx.all<{ group_id: string }>(
    `SELECT group_id FROM group_intervals
      WHERE account = ? AND device_id = ? AND group_id > ? AND message_to IS NULL
      ORDER BY group_id LIMIT ?`,
    account,
    deviceId,
    after,
    limit,
  );
  return rows.map(({ group_id }) => group_id);
}

/** Reads the devices of accounts, fifty at most, that have an open interval in a group. */
export async function readOpenDevices(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<DeviceKey[]> {
  return await tx.all<DeviceKey & Row>(...openDevices(groupId, accounts));
}

/** As {@link readOpenDevices}, for an append. */
export function openDevices(groupId: string, accounts: readonly string[]): Statement {
  return [
    `SELECT account, device_id AS "deviceId" FROM group_intervals
      WHERE group_id = ? AND account IN (${placeholders(accounts)})
        AND message_to IS NULL AND authority = 1`,
    groupId,
    ...accounts,
  ];
}

function range(from: number, to: number | null): { readonly from: number; readonly to?: number } {
  return to === null ? { from } : { from, to };
}

/**
 * Opens an interval. It replaces an ended interval with the same start, in which nothing was
 * readable: nothing happened since the device became inactive, or a recovery was approved with the
 * event at which the device's interval began.
 */
export async function openInterval(
  tx: Writer,
  groupId: string,
  { account, deviceId, access }: DeviceKey & { readonly access: DeviceAccess },
): Promise<void> {
  await tx.run(
    `INSERT INTO group_intervals (group_id, account, device_id, message_from, key_from, authority)
      VALUES (?, ?, ?, ?, ?, 1)
      ON CONFLICT (group_id, account, device_id, message_from) DO UPDATE
        SET message_to = NULL, key_from = excluded.key_from, key_to = NULL, authority = 1`,
    groupId,
    account,
    deviceId,
    access.messages.from,
    access.keys.from,
  );
}

/**
 * Ends an account's open intervals and revokes the authority of all its intervals, as recovery,
 * leave, removal and ban do (05 §10.3).
 */
export async function endAccess(
  tx: Writer,
  groupId: string,
  { account, at }: { readonly account: string; readonly at: TimelinePosition },
): Promise<void> {
  await tx.run(
    `UPDATE group_intervals SET message_to = COALESCE(message_to, ?),
        key_to = COALESCE(key_to, ?), authority = 0
      WHERE group_id = ? AND account = ? AND authority = 1`,
    at.sequence,
    at.epoch,
    groupId,
    account,
  );
}

/**
 * Closes the open interval of a device that became inactive; its ranges stay readable.
 * @returns whether one was open
 */
export async function closeInterval(
  tx: Writer,
  groupId: string,
  { account, deviceId, at }: DeviceKey & { readonly at: TimelinePosition },
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE group_intervals SET message_to = ?, key_to = ?
      WHERE group_id = ? AND account = ? AND device_id = ? AND message_to IS NULL`,
    at.sequence,
    at.epoch,
    groupId,
    account,
    deviceId,
  );
  return changed > 0;
}

/** Records that the relay secret of an epoch was delivered to a device (05 §7.3). */
export async function markDelivered(
  tx: Writer,
  groupId: string,
  { account, deviceId, epoch }: DeviceKey & { readonly epoch: number },
): Promise<void> {
  await tx.run(
    `UPDATE group_intervals SET delivered_epoch = ?
      WHERE group_id = ? AND account = ? AND device_id = ? AND message_to IS NULL
        AND (delivered_epoch IS NULL OR delivered_epoch < ?)`,
    epoch,
    groupId,
    account,
    deviceId,
    epoch,
  );
}
