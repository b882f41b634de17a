/** All SQL of devices that became inactive, until whoever gave them access has ended it. */
import type { Reader, Row, Writer } from '../storage/types.ts';

/** A device of an account. */
export interface DeviceKey {
  readonly account: string;
  readonly deviceId: string;
}

/** Notes, in the transaction that makes it so, that a device is not valid any more. */
export async function markInactive(tx: Writer, { account, deviceId }: DeviceKey): Promise<void> {
  await tx.run(
    `INSERT INTO inactive_devices (account, device_id) VALUES (?, ?)
      ON CONFLICT (account, device_id) DO NOTHING`,
    account,
    deviceId,
  );
}

/** Noted devices behind one of them, in the order of their keys. */
export async function readInactive(
  tx: Reader,
  { after, most }: { readonly after: DeviceKey | undefined; readonly most: number },
): Promise<DeviceKey[]> {
  return await tx.all<DeviceKey & Row>(
    `SELECT account, device_id AS "deviceId" FROM inactive_devices
      WHERE (account, device_id) > (?, ?) ORDER BY account, device_id LIMIT ?`,
    after?.account ?? '',
    after?.deviceId ?? '',
    most,
  );
}

export async function isMarkedInactive(
  tx: Reader,
  { account, deviceId }: DeviceKey,
): Promise<boolean> {
  const noted = await tx.get(
    'SELECT account FROM inactive_devices WHERE account = ? AND device_id = ?',
    account,
    deviceId,
  );
  return noted !== undefined;
}

/** Devices of an account that are noted. */
export async function readInactiveOf(tx: Reader, account: string): Promise<DeviceKey[]> {
  return await tx.all<DeviceKey & Row>(
    'SELECT account, device_id AS "deviceId" FROM inactive_devices WHERE account = ?',
    account,
  );
}

/**
 * Called in the aggregate of the account, when nothing of the device is left to end,
 * or when it is valid again.
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
  /** When, Unix seconds. */
  readonly expiresAt: number;
}

/** Devices whose certificate expired without anybody having noted it, behind one of them. */
export async function readExpiredDevices(
  tx: Reader,
  {
    now,
    after,
    most,
  }: {
    readonly now: number;
    readonly after: ExpiredDevice | undefined;
    readonly most: number;
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
    most,
  );
}

/** Notes a device as inactive, unless it was renewed meanwhile. */
export async function markExpired(
  tx: Writer,
  { account, deviceId }: DeviceKey,
  now: number,
): Promise<void> {
  const noted = await tx.run(
    `UPDATE devices SET noted = 1
      WHERE account = ? AND device_id = ? AND noted = 0 AND expires_at <= ?`,
    account,
    deviceId,
    now,
  );
  if (noted > 0) await markInactive(tx, { account, deviceId });
}

/** When the next certificate expires, behind an instant, that nobody has noted. */
export async function nextDeviceExpiry(tx: Reader, now: number): Promise<number | undefined> {
  const row = await tx.get<{ expires_at: number }>(
    `SELECT expires_at FROM devices WHERE noted = 0 AND expires_at > ?
      ORDER BY expires_at LIMIT 1`,
    now,
  );
  return row?.expires_at;
}
