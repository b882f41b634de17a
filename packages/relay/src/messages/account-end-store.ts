/** SQL that ends what is stored for one account; the jobs of retention and delivery do the rest. */
import type { Writer } from '../storage/types.ts';

/**
 * Makes records of an account's timeline due to be removed, after a sequence.
 *
 * @returns the last sequence, and how many; `undefined` if there are no more
 */
export async function endRecords(
  tx: Writer,
  account: string,
  page: { readonly after: number; readonly now: number; readonly limit: number },
): Promise<{ readonly last: number; readonly count: number } | undefined> {
  const { after, now, limit } = page;
  // Of any deadline: those that ended before are part of a page, and not passed over by a statement.
  const rows = await tx.all<{ sequence: number }>(
    `SELECT sequence FROM timeline_records WHERE account = ? AND sequence > ?
      ORDER BY sequence LIMIT ?`,
    account,
    after,
    limit,
  );
  const last = rows.at(-1)?.sequence;
  if (last === undefined) return undefined;
  const count = await tx.run(
    `UPDATE timeline_records SET keep_until = ?
      WHERE account = ? AND sequence > ? AND sequence <= ? AND keep_until > ?`,
    now,
    account,
    after,
    last,
    now,
  );
  return { last, count };
}

/** Ends the deliveries of an account's messages: their results become `failed`. */
export async function endDeliveries(tx: Writer, account: string, now: number): Promise<void> {
  await tx.run(
    'UPDATE deliveries SET deadline = ?, next_attempt_at = ? WHERE sender = ? AND deadline > ?',
    now,
    now,
    account,
    now,
  );
}
