/** SQL of the bytes that owners store in a day. */
import type { Reader, Writer } from '../storage/types.ts';

/** Adds bytes to those of an owner's day; returns the sum. */
export async function addBytes(
  tx: Writer,
  { owner, day, bytes }: { readonly owner: string; readonly day: number; readonly bytes: number },
): Promise<number> {
  const row = await tx.get<{ bytes: number }>(
    `INSERT INTO daily_bytes (owner, day, bytes) VALUES (?, ?, ?)
      ON CONFLICT (owner, day) DO UPDATE SET bytes = daily_bytes.bytes + excluded.bytes
      RETURNING bytes`,
    owner,
    day,
    bytes,
  );
  return row?.bytes ?? bytes;
}

/**
 * Reads what an account stored since a day, as far as it is saved, and the bytes of its attachments:
 * `blobs/` counts these.
 */
export async function readTotal(tx: Reader, account: string, since: number): Promise<number> {
  const row = await tx.get<{ bytes: number }>(
    `SELECT COALESCE((SELECT CAST(SUM(bytes) AS BIGINT) FROM daily_bytes
          WHERE owner = ? AND day >= ?), 0)
        + COALESCE((SELECT counted FROM blob_usage WHERE account = ?), 0) AS bytes`,
    `account ${account}`,
    since,
    account,
  );
  return row?.bytes ?? 0;
}

/** Removes up to `batchSize` rows of earlier days; returns how many. */
export async function deleteDaysBefore(
  tx: Writer,
  day: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM daily_bytes WHERE (owner, day) IN
      (SELECT owner, day FROM daily_bytes WHERE day < ? LIMIT ?)`,
    day,
    batchSize,
  );
}

/** Returns the earliest day that is stored. */
export async function firstDay(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ day: number }>('SELECT day FROM daily_bytes ORDER BY day LIMIT 1');
  return row?.day;
}
