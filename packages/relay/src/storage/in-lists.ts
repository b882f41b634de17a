/** Limit of values in one `IN (...)`; more are split over several statements. */
const maxLength = 512;

/**
 * Limit of rows with a text of up to 1 MiB that one statement deletes: SQLite frees the pages of a text
 * one by one, and a statement is not divided over turns of the event loop. With `RETURNING` it reads all
 * of each row, so what is needed of the rows is selected before.
 */
export const largeRows = 16;

/**
 * Splits values into chunks for `IN (...)`. Each chunk is padded to a power of two by repeating its
 * last value, so that the engines prepare ten statements instead of five hundred.
 *
 * @param limit values of a chunk at the most
 * @example
 * for (const batch of chunks(accounts)) {
 *   await tx.all(`SELECT role FROM group_members WHERE account IN (${placeholders(batch)})`, ...batch);
 * }
 */
export function* chunks<T>(values: readonly T[], limit = maxLength): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += limit) {
    const chunk = values.slice(start, start + limit);
    const size = 2 ** Math.ceil(Math.log2(chunk.length));
    const last = chunk.at(-1) as T;
    yield [...chunk, ...Array.from({ length: size - chunk.length }, () => last)];
  }
}

/** Returns one `?` per value, separated by commas. */
export function placeholders(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** Limit of concurrent calls: PostgreSQL pipelines their statements. */
const maxConcurrent = 256;

/**
 * Runs a few statements for each item, up to {@link maxConcurrent} items at once, in no particular
 * order. For use inside one transaction.
 */
export async function forEach<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < items.length; start += maxConcurrent) {
    await Promise.all(items.slice(start, start + maxConcurrent).map(work));
  }
}
