import type { SqlValue } from './types.ts';

/**
 * Holds values to what every engine stores and gives back unchanged: SQLite would take a fraction
 * or a number past 2^53 and keep something near it, PostgreSQL has no U+0000.
 *
 * @throws TypeError
 */
export function checkValues(values: readonly SqlValue[]): readonly SqlValue[] {
  for (const value of values) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw new TypeError('only safe integers are stored');
    }
    if (typeof value === 'string' && (!value.isWellFormed() || value.includes('\u0000'))) {
      throw new TypeError('only well-formed texts without U+0000 are stored');
    }
  }
  return values;
}
