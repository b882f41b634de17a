/** Goes through the rows of a backup's table, a few at a time. */
import { ProtocolError } from '@posthouse/protocol';
import { JsonError } from '@posthouse/protocol/json';
import { type Key, readBatch } from '../storage/move/rows.ts';
import type { Reader, Row } from '../storage/types.ts';
import { type BackupFile, type BackupWork, pausing } from './backup-file.ts';

/** Something in a backup that is not as it must be. */
export interface Problem {
  /** Table and key of the row. */
  readonly row: string;
  readonly why: string;
}

/** How the rows of one table are verified. */
export interface RowCheck {
  /** What its rows are, in plain words. */
  readonly kind: string;
  readonly table: string;
  /**
   * Verifies one row.
   * @throws Error that says what is wrong
   */
  readonly verify: (row: Row, tx: Reader) => Promise<void>;
}

/** @returns how many rows there are */
export async function runCheck(
  file: BackupFile,
  { kind, table: name, verify }: RowCheck,
  { signal, progress, found }: BackupWork & { readonly found: (problem: Problem) => void },
): Promise<number> {
  const table = (await file.tables()).find((each) => each.name === name);
  // A backup of an older version: a relay has the table after its start.
  if (table === undefined) return 0;
  const total = file.manifest.tables[name]?.rows ?? 0;
  const read = pausing(file.read, signal);
  let after: Key | undefined;
  let done = 0;
  do {
    const batch = await read((tx) => readBatch(tx, table, after));
    for (const row of batch.rows) {
      const why = await read((tx) => reasonOf(verify(row, tx)));
      const key = table.key.map((column) => row[column]).join(' ');
      if (why !== undefined) found({ row: `${name} ${key}`, why });
      done += 1;
      progress?.({ step: `verifying ${kind}`, done, total });
    }
    after = batch.last;
  } while (after !== undefined);
  return done;
}

async function reasonOf(work: Promise<void>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    const isReason = [ProtocolError, JsonError, MissingRow].some((kind) => error instanceof kind);
    if (isReason) return (error as Error).message;
    // Text that is not of the form that a relay stores.
    if (error instanceof TypeError || error instanceof RangeError) {
      return `it has not the form that a relay stores: ${error.message}`;
    }
    throw error;
  }
}

/** A reference to a row that is not there. */
class MissingRow extends Error {}

/**
 * Reads a text that a row refers to.
 * @throws MissingRow
 */
export async function requireText(
  tx: Reader,
  what: string,
  [sql, ...values]: readonly [sql: string, ...values: (string | number | null)[]],
): Promise<string> {
  const row = await tx.get<{ text: string }>(sql, ...values);
  if (row === undefined) throw new MissingRow(`${what} is missing`);
  return row.text;
}

/**
 * Checks that no row has a sequence above the highest that was assigned, which would be given again.
 *
 * @param select of the highest sequence, as `highest`
 * @throws MissingRow
 */
export async function requireHead(
  tx: Reader,
  head: number,
  [sql, ...values]: readonly [sql: string, ...values: (string | number | null)[]],
): Promise<void> {
  const { highest } = (await tx.get<{ highest: number | null }>(sql, ...values)) ?? {};
  if ((highest ?? -1) > head) throw wrong(`its head ${head} is below its sequence ${highest}`);
}

/** Reports what is wrong in a row. */
export function wrong(why: string): Error {
  return new MissingRow(why);
}
