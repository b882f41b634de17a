/**
 * SQL of the log of ended sessions; `auth/` has the migration. Every process reads it again and again
 * (`notifications/session-ends.ts`): a notice may be lost, a row is not.
 */
import type { Reader, Writer } from '../storage/types.ts';

/** Entries kept. A process that has not read for longer checks all its sessions. */
const entriesKept = 4_096;
/** Entries of one read. */
const batchSize = 1_000;

/**
 * Notes that sessions of an account ended, or end earlier, in the transaction in which they do. The
 * counter's row stays locked until the commit: entries become visible in the order of their numbers.
 */
export async function logSessionEnd(tx: Writer, account: string): Promise<void> {
  const head = await tx.get<{ number: number }>(
    `INSERT INTO auth_session_ends_head (id, number) VALUES (0, 1)
      ON CONFLICT (id) DO UPDATE SET number = auth_session_ends_head.number + 1 RETURNING number`,
  );
  if (head === undefined) throw new Error('the log of ended sessions has no number');
  const { number } = head;
  await tx.run('INSERT INTO auth_session_ends (number, account) VALUES (?, ?)', number, account);
  await tx.run('DELETE FROM auth_session_ends WHERE number <= ?', number - entriesKept);
}

/** Reads the number of the last entry; 0 if there is none. */
export async function readLastSessionEnd(tx: Reader): Promise<number> {
  const row = await tx.get<{ number: number }>(
    'SELECT number FROM auth_session_ends_head WHERE id = 0',
  );
  return row?.number ?? 0;
}

/** What the log has after an entry. */
export interface SessionEnds {
  /** Accounts of the entries; `any` if entries are missing. */
  readonly accounts: readonly string[] | 'any';
  /** Number of the last entry that was read. */
  readonly last: number;
  /** Whether there may be more after that. */
  readonly hasMore: boolean;
}

/** Reads the entries after a number. */
export async function readSessionEnds(tx: Reader, after: number): Promise<SessionEnds> {
  // The entry itself too: without it, entries after it may be missing as well.
  const rows = await tx.all<{ number: number; account: string }>(
    'SELECT number, account FROM auth_session_ends WHERE number >= ? ORDER BY number LIMIT ?',
    after,
    batchSize,
  );
  const first = rows[0]?.number ?? 0;
  const last = rows.at(-1)?.number ?? 0;
  if (after !== 0 && first !== after) {
    return { accounts: 'any', last: await readLastSessionEnd(tx), hasMore: false };
  }
  const entries = rows.filter(({ number }) => number > after);
  const accounts = [...new Set(entries.map(({ account }) => account))];
  return { accounts, last: Math.max(last, after), hasMore: rows.length === batchSize };
}
