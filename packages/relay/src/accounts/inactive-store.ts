/** All SQL of devices that became inactive, until their access to groups has ended (05 §7.3). */
import type { Reader, Row, Writer } from '../storage/types.ts';

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
  return await tx.all<DeviceKey & Row>(
    `SELECT account, device_id AS "deviceId" FROM inactive_devices
      WHERE (account, device_id) > (?, ?) ORDER BY account, device_id LIMIT ?`,
    after?.account ?? '',
    after?.deviceId ?? '',
    limit,
  );
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

/** A device whose certificate expired. */
export interface ExpiredDevice extends DeviceKey {
  /** End of the certificate, Unix seconds. */
  readonly expiresAt: number;
}

/** Reads devices whose certificate expired and that are not marked yet, after a given one. */
export async function readExpiredDevices(
  tx: Reader,
  {
    now,
    after,
    limit,
  }: {
    readonly now: number;
    readonly after: ExpiredDevice | undefined;
    readonly limit: number;
  },
): Promise<ExpiredDevice[]> {
  return await tx.all<ExpiredDevice & Row>(
    `SELECT account, device_id AS "deviceId", expires_at AS "expiresAt" FROM devices
      WHERE noted = 0 AND expires_at <= ? AND (expires_at, account, device_id) > (?, ?, ?)
      ORDER BY expires_at, account, device_id LIMIT ?`,
    now,
    after?.expiresAt ?? Number.MIN_SAFE_INTEGER,
    after?.account ?? '',
    after?.deviceId ?? '',
    limit,
  );
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

/** Returns when the next certificate expires after `now`. */
export async function nextDeviceExpiry(tx: Reader, now: number): Promise<number | undefined> {
  const row = await tx.get<{ expires_at: number }>(
    `SELECT expires_at FROM devices WHERE noted = 0 AND expires_at > ?
      ORDER BY expires_at LIMIT 1`,
    now,
  );
  return row?.expires_at;
}
