/** Values in one `IN (...)`; more go into several statements. */
const maxLength = 512;

/**
 * Cuts values into lists for `IN (...)`. Each is filled up to a power of two by repeating its last
 * value, so that the engines prepare ten statements and not five hundred.
 *
 * @example
 * for (const batch of chunks(accounts)) {
 *   await tx.all(`SELECT role FROM group_members WHERE account IN (${placeholders(batch)})`, ...batch);
 * }
 */
export function* chunks<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < values.length; start += maxLength) {
    const some = values.slice(start, start + maxLength);
    const size = 2 ** Math.ceil(Math.log2(some.length));
    const last = some.at(-1) as T;
    yield [...some, ...Array.from({ length: size - some.length }, () => last)];
  }
}

/** As many parameters as there are values. */
export function placeholders(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** Works in flight at once: an engine that can sends their statements without waiting for each. */
const maxConcurrent = 256;

/**
 * Runs a statement or a few for each item, many at once; the order does not matter. For use within
 * one transaction.
 */
export async function forEach<T>(
  items: readonly T[],
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  for (let start = 0; start < items.length; start += maxConcurrent) {
    await Promise.all(items.slice(start, start + maxConcurrent).map(work));
  }
}
