/** SQL of blobs and of the bytes that accounts store. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Writer } from '../storage/types.ts';

export interface StoredBlob {
  readonly account: string;
  readonly bytes: number;
}

export interface NewBlob extends StoredBlob {
  readonly name: string;
  readonly counted: number;
  readonly keepUntil: number;
}

/** Reads the counted bytes of an account's blobs. */
export async function readUsage(tx: Reader, account: string): Promise<number> {
  const row = await tx.get<{ counted: number }>(
    'SELECT counted FROM blob_usage WHERE account = ?',
    account,
  );
  return row?.counted ?? 0;
}

/** Returns when the first blob of an account ends, Unix seconds. */
export async function nextEndOf(tx: Reader, account: string): Promise<number | undefined> {
  const row = await tx.get<{ until: number }>(
    'SELECT keep_until AS until FROM blobs WHERE account = ? ORDER BY keep_until LIMIT 1',
    account,
  );
  return row?.until;
}

/**
 * Adds the row of a blob that is received, and counts it: for its account, and then for all, whose row
 * the writes of several accounts wait for.
 *
 * @returns the counted bytes of all blobs
 */
export async function insertBlob(tx: Writer, blob: NewBlob): Promise<number> {
  const { name, account, bytes, counted, keepUntil } = blob;
  await tx.run(
    `INSERT INTO blobs (name, account, bytes, counted, keep_until, state)
      VALUES (?, ?, ?, ?, ?, 'receiving')`,
    ...[name, account, bytes, counted, keepUntil],
  );
  await tx.run(
    `INSERT INTO blob_usage (account, counted) VALUES (?, ?)
      ON CONFLICT (account) DO UPDATE SET counted = blob_usage.counted + excluded.counted`,
    account,
    counted,
  );
  const total = await tx.get<{ counted: number }>(
    `INSERT INTO blob_total (slot, counted) VALUES (1, ?)
      ON CONFLICT (slot) DO UPDATE SET counted = blob_total.counted + excluded.counted
      RETURNING counted`,
    counted,
  );
  return total?.counted ?? counted;
}

/** Marks a received blob as stored; returns false if its upload is over already. */
export async function markStored(tx: Writer, name: string, keepUntil: number): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE blobs SET state = 'stored', keep_until = ? WHERE name = ? AND state = 'receiving'",
    keepUntil,
    name,
  );
  return changed === 1;
}

/** Reads a blob that may be downloaded. */
export async function readStored(
  tx: Reader,
  name: string,
  now: number,
): Promise<StoredBlob | undefined> {
  return await tx.get<{ account: string; bytes: number }>(
    "SELECT account, bytes FROM blobs WHERE name = ? AND state = 'stored' AND keep_until > ?",
    name,
    now,
  );
}

/** Marks a blob as one whose file is deleted, from now on; it is due at once. */
export async function markEnding(tx: Writer, name: string, now: number): Promise<void> {
  await tx.run(
    "UPDATE blobs SET state = 'ending', keep_until = ? WHERE name = ? AND state <> 'ending'",
    now,
    name,
  );
}

/** Makes blobs of an account due to be deleted, also unfinished ones; returns how many. */
export async function endBlobs(
  tx: Writer,
  account: string,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<number> {
  return await tx.run(
    `UPDATE blobs SET keep_until = ? WHERE name IN
      (SELECT name FROM blobs WHERE account = ? AND keep_until > ? LIMIT ?)`,
    ...[now, account, now, limit],
  );
}

/** Marks those of an account's blobs as ending that are due; returns the names of these. */
export async function markDue(
  tx: Writer,
  account: string,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<string[]> {
  const due = await tx.all<{ name: string }>(
    'SELECT name FROM blobs WHERE account = ? AND keep_until <= ? ORDER BY keep_until LIMIT ?',
    account,
    now,
    limit,
  );
  const names = due.map(({ name }) => name);
  for (const some of chunks(names)) {
    await tx.run(
      `UPDATE blobs SET state = 'ending' WHERE name IN (${placeholders(some)})`,
      ...some,
    );
  }
  return names;
}

/**
 * Deletes the rows of ending blobs of an account whose files are gone, and no longer counts them: all of
 * them at once, for uploads of all accounts wait for the row of the total.
 */
export async function deleteEnded(
  tx: Writer,
  account: string,
  names: readonly string[],
): Promise<void> {
  const ended: { counted: number }[] = [];
  for (const some of chunks(names)) {
    const rows = await tx.all<{ counted: number }>(
      `DELETE FROM blobs WHERE name IN (${placeholders(some)}) AND state = 'ending'
        RETURNING counted`,
      ...some,
    );
    ended.push(...rows);
  }
  if (ended.length === 0) return;
  const counted = ended.reduce((sum, row) => sum + row.counted, 0);
  await tx.run('UPDATE blob_usage SET counted = counted - ? WHERE account = ?', counted, account);
  await tx.run('DELETE FROM blob_usage WHERE account = ? AND counted <= 0', account);
  await tx.run('UPDATE blob_total SET counted = counted - ? WHERE slot = 1', counted);
}

/** Reads which account has the blob that is due first, and since when. */
export async function readFirstDue(
  tx: Reader,
): Promise<{ readonly account: string; readonly keepUntil: number } | undefined> {
  return await tx.get<{ account: string; keepUntil: number }>(
    'SELECT account, keep_until AS "keepUntil" FROM blobs ORDER BY keep_until LIMIT 1',
  );
}
