/** Reads whole tables in short steps: each is a snapshot of its own, and calls come between. */
import { nextTurn } from '../../event-loop.ts';
import type { Reader, Row, SqlValue, Storage } from '../../storage/types.ts';

/** What is read from. */
export type Source = Pick<Storage, 'read'>;

/** Rows of one step: less than a millisecond. */
export const step = 500;

/**
 * Reads step after step.
 *
 * @param start before the first row
 * @param options.read reads up to {@link step} rows after a position; may be run again
 * @param options.take uses them, once; returns the position of the last one, or `undefined` to end
 */
export async function scan<P, T>(
  storage: Source,
  start: P,
  {
    read,
    take,
  }: {
    readonly read: (tx: Reader, after: P) => Promise<T>;
    readonly take: (found: T) => P | undefined;
  },
): Promise<void> {
  for (let after: P | undefined = start; after !== undefined; ) {
    const at: P = after;
    after = take(await storage.read((tx) => read(tx, at)));
    await nextTurn();
  }
}

interface Sum extends Row {
  readonly last: string | null;
  readonly seen: number;
}

/**
 * Adds up the columns `names` of a statement over rows in the order of one ID. It has the columns
 * `last` and `seen` in addition; its parameters are those given, the ID, and a limit.
 *
 * @example
 * const sql = `SELECT max(id) AS last, count(*) AS seen, sum(bytes) AS bytes FROM
 *   (SELECT account AS id, octet_length(route) AS bytes FROM account_routes
 *     WHERE account > ? ORDER BY account LIMIT ?) AS rows`;
 * const { bytes } = await sumOf(storage, { sql }, ['bytes']);
 */
export async function sumOf<Names extends string>(
  storage: Source,
  { sql, values = [] }: { readonly sql: string; readonly values?: readonly SqlValue[] },
  names: readonly Names[],
): Promise<Record<Names, number>> {
  const sums = Object.fromEntries(names.map((name) => [name, 0])) as Record<Names, number>;
  await scan(storage, '', {
    read: (tx, after) => tx.get<Sum>(sql, ...values, after, step),
    take(row) {
      for (const name of names) sums[name] += Number(row?.[name] ?? 0);
      return row === undefined || row.seen < step ? undefined : (row.last ?? undefined);
    },
  });
  return sums;
}
