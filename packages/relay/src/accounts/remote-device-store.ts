/** All SQL of devices whose accounts are at home at other relays (07 §C5, §C9). */
import { hasDeviceSession } from '../sessions/session-store.ts';
import { placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { DeviceKey } from './inactive-store.ts';
import type { Device } from './store.ts';

/** A device of an account at home elsewhere, as its home relay last described it. */
export interface RemoteDevice extends DeviceKey {
  /** The home relay that was asked, or has to be asked. */
  readonly relayId: string;
  readonly certificateId: string;
  /** Canonical JSON of the certificate that the device last signed in with. */
  readonly certificate: string;
  /** `asked`: the first answer has not come yet. */
  readonly status: 'asked' | 'active' | 'inactive';
  /** End of the device's latest certificate by the last answer, Unix seconds. */
  readonly expiresAt: number;
  /** Time of the last answer, or of the first question; Unix seconds. */
  readonly confirmedAt: number;
  /** Whether the home relay must be asked before the device may act. */
  readonly isStale: boolean;
  /** Grows with each change that makes answers to earlier questions useless. */
  readonly generation: number;
  /** Failed questions in a row. */
  readonly failures: number;
}

interface RemoteRow extends Row {
  account: string;
  device_id: string;
  relay_id: string;
  certificate_id: string;
  certificate: string;
  status: RemoteDevice['status'];
  expires_at: number;
  confirmed_at: number;
  stale: number;
  generation: number;
  failures: number;
}

const columns = `account, device_id, relay_id, certificate_id, certificate, status, expires_at,
  confirmed_at, stale, generation, failures`;

export async function readRemoteDevice(
  tx: Reader,
  { account, deviceId }: DeviceKey,
): Promise<RemoteDevice | undefined> {
  const row = await tx.get<RemoteRow>(
    `SELECT ${columns} FROM remote_devices WHERE account = ? AND device_id = ?`,
    account,
    deviceId,
  );
  return row === undefined ? undefined : toRemoteDevice(row);
}

/** Counts the devices of an account whose home relay has not answered yet. */
export async function countAsked(tx: Reader, account: string): Promise<number> {
  const row = await tx.get<{ asked: number }>(
    `SELECT COUNT(*) AS asked FROM remote_devices WHERE account = ? AND status = 'asked'`,
    account,
  );
  return Number(row?.asked);
}

/** Reads the devices of an account at home elsewhere. */
export async function readRemoteDevices(tx: Reader, account: string): Promise<RemoteDevice[]> {
  const rows = await tx.all<RemoteRow>(
    `SELECT ${columns} FROM remote_devices WHERE account = ?`,
    account,
  );
  return rows.map(toRemoteDevice);
}

/** Replaces a device, with the time at which its home relay is asked again. */
export async function writeRemoteDevice(
  tx: Writer,
  device: RemoteDevice,
  nextCheckAt: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO remote_devices (${columns}, next_check_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (account, device_id) DO UPDATE SET relay_id = excluded.relay_id,
        certificate_id = excluded.certificate_id, certificate = excluded.certificate,
        status = excluded.status, expires_at = excluded.expires_at,
        confirmed_at = excluded.confirmed_at, stale = excluded.stale,
        generation = excluded.generation, failures = excluded.failures,
        next_check_at = excluded.next_check_at`,
    device.account,
    device.deviceId,
    device.relayId,
    device.certificateId,
    device.certificate,
    device.status,
    device.expiresAt,
    device.confirmedAt,
    device.isStale ? 1 : 0,
    device.generation,
    device.failures,
    nextCheckAt,
  );
}

/** Replaces the certificate that events of the device are stored with. */
export async function writeRemoteCertificate(
  tx: Writer,
  { account, deviceId }: DeviceKey,
  { certificateId, certificate }: Pick<Device, 'certificateId' | 'certificate'>,
): Promise<void> {
  await tx.run(
    `UPDATE remote_devices SET certificate_id = ?, certificate = ?
      WHERE account = ? AND device_id = ? AND certificate_id <> ?`,
    certificateId,
    certificate,
    account,
    deviceId,
    certificateId,
  );
}

/** Makes what is known of a device useless until its home relay was asked again, which is due now. */
export async function invalidateRemoteDevice(
  tx: Writer,
  { account, deviceId }: DeviceKey,
  now: number,
): Promise<void> {
  await tx.run(
    `UPDATE remote_devices
      SET stale = 1, generation = generation + 1, failures = 0, next_check_at = ?
      WHERE account = ? AND device_id = ?`,
    now,
    account,
    deviceId,
  );
}

/** As {@link invalidateRemoteDevice}, for all devices of an account whose home may have changed. */
export async function invalidateRemoteDevices(
  tx: Writer,
  account: string,
  { relayId, now }: { readonly relayId: string; readonly now: number },
): Promise<void> {
  await tx.run(
    `UPDATE remote_devices SET relay_id = ?, stale = 1, generation = generation + 1, failures = 0,
        next_check_at = ?
      WHERE account = ?`,
    relayId,
    now,
    account,
  );
}

export async function deleteRemoteDevice(
  tx: Writer,
  { account, deviceId }: DeviceKey,
): Promise<void> {
  await tx.run('DELETE FROM remote_devices WHERE account = ? AND device_id = ?', account, deviceId);
}

export async function deleteRemoteDevices(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM remote_devices WHERE account = ?', account);
}

/**
 * Takes up to `batchSize` devices that are due: until `leaseUntil` no other process takes them.
 *
 * @param claim.without home relays whose devices are not taken
 */
export async function claimDueDevices(
  tx: Writer,
  claim: {
    readonly now: number;
    readonly leaseUntil: number;
    readonly batchSize: number;
    readonly without: readonly string[];
  },
): Promise<RemoteDevice[]> {
  const { now, leaseUntil, batchSize, without } = claim;
  const others = without.length === 0 ? '' : `AND relay_id NOT IN (${placeholders(without)})`;
  const rows = await tx.all<RemoteRow>(
    `UPDATE remote_devices SET next_check_at = ?
      WHERE next_check_at <= ? AND (account, device_id) IN
        (SELECT account, device_id FROM remote_devices WHERE next_check_at <= ? ${others}
          ORDER BY next_check_at, account, device_id LIMIT ?)
      RETURNING ${columns}`,
    leaseUntil,
    now,
    now,
    ...without,
    batchSize,
  );
  return rows.map(toRemoteDevice);
}

/** Puts off the next question, unless the device changed after it was read. */
export async function postponeCheck(
  tx: Writer,
  { account, deviceId, generation }: RemoteDevice,
  { failures, nextCheckAt }: { readonly failures: number; readonly nextCheckAt: number },
): Promise<void> {
  await tx.run(
    `UPDATE remote_devices SET failures = ?, next_check_at = ?
      WHERE account = ? AND device_id = ? AND generation = ?`,
    failures,
    nextCheckAt,
    account,
    deviceId,
    generation,
  );
}

/** Returns when the next device is due, Unix seconds. */
export async function nextDeviceCheck(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ next_check_at: number }>(
    'SELECT next_check_at FROM remote_devices ORDER BY next_check_at LIMIT 1',
  );
  return row?.next_check_at;
}

/**
 * What at this relay rests on a device. The module of groups may import this one, so its table is
 * read here.
 */
export async function readDeviceUses(
  tx: Reader,
  device: DeviceKey,
  now: number,
): Promise<{ readonly hasSession: boolean; readonly hasOpenInterval: boolean }> {
  const { account, deviceId } = device;
  const interval = await tx.get(
    `SELECT account FROM group_intervals
      WHERE account = ? AND device_id = ? AND message_to IS NULL LIMIT 1`,
    account,
    deviceId,
  );
  return {
    hasSession: await hasDeviceSession(tx, device, now),
    hasOpenInterval: interval !== undefined,
  };
}

function toRemoteDevice(row: RemoteRow): RemoteDevice {
  return {
    account: row.account,
    deviceId: row.device_id,
    relayId: row.relay_id,
    certificateId: row.certificate_id,
    certificate: row.certificate,
    status: row.status,
    expiresAt: row.expires_at,
    confirmedAt: row.confirmed_at,
    isStale: row.stale === 1,
    generation: row.generation,
    failures: row.failures,
  };
}
