/** All SQL of devices that became inactive, until their access to groups has ended (05 §7.3). */
import type { Reader, Row, Statement, Writer } from '../storage/types.ts';

/** A device of an account. */
export interface DeviceKey {
  readonly account: string;
  readonly deviceId: string;
}

/** Marks a device as inactive; called in the transaction that ends its validity. */
export async function markInactive(tx: Writer, { account, deviceId }: DeviceKey): Promise<void> {
  await tx.run(
    `INSERT INTO inactive_devices (account, device_id) VALUES (?, ?)
      ON CONFLICT (account, device_id) DO NOTHING`,
    account,
    deviceId,
  );
}

/** Reads inactive devices after a given one, in the order of their keys. */
export async function readInactive(
  tx: Reader,
  { after, limit }: { readonly after: DeviceKey | undefined; readonly limit: number },
): Promise<DeviceKey[]> {
  return await tx.all<DeviceKey & Row>(...inactiveDevices({ after, limit }));
}

/** As {@link readInactive}, for an append; rows of {@link DeviceKey}. */
export function inactiveDevices({
  after,
  limit,
}: {
  readonly after: DeviceKey | undefined;
  readonly limit: number;
}): Statement {
  return [
    `SELECT account, device_id AS "deviceId" FROM inactive_devices
      WHERE (account, device_id) > (?, ?) ORDER BY account, device_id LIMIT ?`,
    after?.account ?? '',
    after?.deviceId ?? '',
    limit,
  ];
}

export async function isMarkedInactive(
  tx: Reader,
  { account, deviceId }: DeviceKey,
): Promise<boolean> {
  const marked = await tx.get(
    'SELECT account FROM inactive_devices WHERE account = ? AND device_id = ?',
    account,
    deviceId,
  );
  return marked !== undefined;
}

/** Reads the inactive devices of an account. */
export async function readInactiveOf(tx: Reader, account: string): Promise<DeviceKey[]> {
  return await tx.all<DeviceKey & Row>(
    'SELECT account, device_id AS "deviceId" FROM inactive_devices WHERE account = ?',
    account,
  );
}

/**
 * Removes the mark when the device has no access left, or is valid again. Called in a write of the
 * account.
 */
export async function unmarkInactive(tx: Writer, { account, deviceId }: DeviceKey): Promise<void> {
  await tx.run(
    'DELETE FROM inactive_devices WHERE account = ? AND device_id = ?',
    account,
    deviceId,
  );
}

/** A device with the end of its certificate. */
export interface ExpiringDevice extends DeviceKey {
  /** End of the certificate, Unix seconds. */
  readonly expiresAt: number;
}

/** A batch of devices after a given one. */
interface Batch {
  readonly now: number;
  readonly after: ExpiringDevice | undefined;
  readonly limit: number;
}

/** Reads devices whose certificate expired and that are not marked yet. */
export async function readExpiredDevices(tx: Reader, batch: Batch): Promise<ExpiringDevice[]> {
  return await tx.all<ExpiringDevice & Row>(
    `SELECT account, device_id AS "deviceId", expires_at AS "expiresAt" FROM devices
      WHERE noted = 0 AND expires_at <= ? AND (expires_at, account, device_id) > (?, ?, ?)
      ORDER BY expires_at, account, device_id LIMIT ?`,
    batch.now,
    ...following(batch),
    batch.limit,
  );
}

/** Reads devices that were marked when the clock was ahead: their certificate has not expired. */
export async function readValidAgain(tx: Reader, batch: Batch): Promise<ExpiringDevice[]> {
  return await tx.all<ExpiringDevice & Row>(
    `SELECT account, device_id AS "deviceId", expires_at AS "expiresAt" FROM devices
      WHERE noted = 1 AND expires_at > ? AND not_before <= ?
        AND (expires_at, account, device_id) > (?, ?, ?)
      ORDER BY expires_at, account, device_id LIMIT ?`,
    batch.now,
    batch.now,
    ...following(batch),
    batch.limit,
  );
}

function following({ after }: Batch): [number, string, string] {
  return [after?.expiresAt ?? Number.MIN_SAFE_INTEGER, after?.account ?? '', after?.deviceId ?? ''];
}

/** Marks a device as inactive unless its certificate was renewed meanwhile. */
export async function markExpired(
  tx: Writer,
  { account, deviceId }: DeviceKey,
  now: number,
): Promise<void> {
  const marked = await tx.run(
    `UPDATE devices SET noted = 1
      WHERE account = ? AND device_id = ? AND noted = 0 AND expires_at <= ?`,
    account,
    deviceId,
    now,
  );
  if (marked > 0) await markInactive(tx, { account, deviceId });
}

/** Removes the mark of an expired certificate, unless it expired or was renewed meanwhile. */
export async function unmarkValid(
  tx: Writer,
  { account, deviceId }: DeviceKey,
  now: number,
): Promise<void> {
  const unmarked = await tx.run(
    `UPDATE devices SET noted = 0
      WHERE account = ? AND device_id = ? AND noted = 1 AND expires_at > ? AND not_before <= ?`,
    account,
    deviceId,
    now,
    now,
  );
  if (unmarked > 0) await unmarkInactive(tx, { account, deviceId });
}

/** Returns when the next certificate expires after `now`. */
export async function nextDeviceExpiry(tx: Reader, now: number): Promise<number | undefined> {
  const row = await tx.get<{ expires_at: number }>(
    `SELECT expires_at FROM devices WHERE noted = 0 AND expires_at > ?
      ORDER BY expires_at LIMIT 1`,
    now,
  );
  return row?.expires_at;
}
