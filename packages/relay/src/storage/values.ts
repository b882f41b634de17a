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

/**
 * A text of others as every engine stores it: U+0000, which none does, and the sign that stands
 * for it. Like this even in a column of texts that were stored as they are, once the sign itself
 * was replaced in them.
 *
 * @example
 * storableText('100 %'); // '100 %25'
 */
export function storableText(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\u0000', '%00');
}

/** The text that {@link storableText} was given. */
export function storedText(stored: string): string {
  return stored.replaceAll('%00', '\u0000').replaceAll('%25', '%');
}
