/** All SQL of the relays that asked for the status of a device at home here (07 §C9). */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { DeviceKey } from './inactive-store.ts';

/** A relay that asked for the status of a device. */
export interface Watcher extends DeviceKey {
  readonly relayId: string;
}

/** A hint that a relay has to be sent. */
export interface DueHint extends Watcher {
  readonly hintAt: number;
  /** Times it was not sent. */
  readonly failures: number;
  /** Grows with each change of the device; a hint sent for an earlier one does not count. */
  readonly changes: number;
}

/** Reads when a relay last asked for a device, Unix seconds. */
export async function readAskedAt(
  tx: Reader,
  { account, deviceId, relayId }: Watcher,
): Promise<number | undefined> {
  const row = await tx.get<{ asked_at: number }>(
    `SELECT asked_at FROM status_watchers
      WHERE account = ? AND device_id = ? AND relay_id = ?`,
    account,
    deviceId,
    relayId,
  );
  return row?.asked_at;
}

/** Records a question; of more than `limit` relays the one that asked longest ago is dropped. */
export async function writeWatcher(
  tx: Writer,
  { account, deviceId, relayId }: Watcher,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO status_watchers (account, device_id, relay_id, asked_at, failures, changes)
      VALUES (?, ?, ?, ?, 0, 0)
      ON CONFLICT (account, device_id, relay_id) DO UPDATE SET asked_at = excluded.asked_at`,
    account,
    deviceId,
    relayId,
    now,
  );
  await tx.run(
    `DELETE FROM status_watchers WHERE account = ? AND device_id = ? AND relay_id IN
      (SELECT relay_id FROM status_watchers WHERE account = ? AND device_id = ?
        ORDER BY asked_at DESC, relay_id LIMIT 100 OFFSET ?)`,
    account,
    deviceId,
    account,
    deviceId,
    limit,
  );
}

/** Makes hints to all relays due that asked for one of these devices, or for any without a list. */
export async function addHints(
  tx: Writer,
  account: string,
  { now, deviceIds }: { readonly now: number; readonly deviceIds?: readonly string[] },
): Promise<void> {
  if (deviceIds === undefined) {
    await tx.run(
      `UPDATE status_watchers SET hint_at = ?, failures = 0, changes = changes + 1
        WHERE account = ?`,
      now,
      account,
    );
    return;
  }
  for (const chunk of chunks(deviceIds)) {
    await tx.run(
      `UPDATE status_watchers SET hint_at = ?, failures = 0, changes = changes + 1
        WHERE account = ? AND device_id IN (${placeholders(chunk)})`,
      now,
      account,
      ...chunk,
    );
  }
}

/** Reads hints that are due, without those of up to 511 relays. */
export async function readDueHints(
  tx: Reader,
  { now, besides, limit }: { now: number; besides: readonly string[]; limit: number },
): Promise<DueHint[]> {
  const [others = []] = chunks(['', ...besides]);
  return await tx.all<DueHint & Row>(
    `SELECT account, device_id AS "deviceId", relay_id AS "relayId", hint_at AS "hintAt", failures,
        changes
      FROM status_watchers
      WHERE hint_at <= ? AND relay_id NOT IN (${placeholders(others)})
      ORDER BY hint_at, account, device_id, relay_id LIMIT ?`,
    ...[now, ...others, limit],
  );
}

/**
 * Records that a hint was sent or given up (`hintAt: null`), or when it is tried again; a hint for a
 * later change stays due.
 */
export async function updateHint(
  tx: Writer,
  { account, deviceId, relayId, changes }: DueHint,
  { hintAt, failures }: { readonly hintAt: number | null; readonly failures: number },
): Promise<void> {
  await tx.run(
    `UPDATE status_watchers SET hint_at = ?, failures = ?
      WHERE account = ? AND device_id = ? AND relay_id = ? AND changes = ?`,
    hintAt,
    failures,
    account,
    deviceId,
    relayId,
    changes,
  );
}

/** Returns when the next hint is due, Unix seconds. */
export async function nextHint(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ hint_at: number }>(
    `SELECT hint_at FROM status_watchers WHERE hint_at IS NOT NULL
      ORDER BY hint_at LIMIT 1`,
  );
  return row?.hint_at;
}

/** Removes up to `batchSize` relays that last asked by an instant. */
export async function deleteWatchers(tx: Writer, by: number, batchSize: number): Promise<void> {
  await tx.run(
    `DELETE FROM status_watchers WHERE (account, device_id, relay_id) IN
      (SELECT account, device_id, relay_id FROM status_watchers WHERE asked_at <= ?
        ORDER BY asked_at LIMIT ?)`,
    by,
    batchSize,
  );
}

/** Returns when the relay that asked longest ago did so, Unix seconds. */
export async function earliestQuestion(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ asked_at: number }>(
    'SELECT asked_at FROM status_watchers ORDER BY asked_at LIMIT 1',
  );
  return row?.asked_at;
}
