import type { JsonObject } from '@posthouse/protocol/json';
import type { Reader } from '../../storage/types.ts';

/** Devices of an account that are shown; an account may have fewer. */
const maxDevices = 1_000;

/** Reads the devices of an account that is, or was, at home here. */
export async function devicesOf(tx: Reader, account: string): Promise<JsonObject> {
  const devices = await tx.all<{ device_id: string; not_before: number; expires_at: number }>(
    `SELECT device_id, not_before, expires_at FROM devices WHERE account = ?
      ORDER BY device_id LIMIT ?`,
    account,
    maxDevices,
  );
  return { devices: devices.map((device) => ({ ...device })) };
}
