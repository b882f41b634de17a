import type { SqlColumn, SqlValue } from './types.ts';

/**
 * Checks that every engine returns the values unchanged: SQLite would accept a fraction or a number
 * above 2^53 and store an approximation; PostgreSQL cannot store U+0000.
 *
 * @throws TypeError
 */
export function checkValues<T extends SqlValue | SqlColumn>(values: readonly T[]): readonly T[] {
  for (const value of values) {
    if (Array.isArray(value)) checkValues(value);
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
 * Escapes a text for storage: `%` and U+0000 (which PostgreSQL cannot store) become `%25` and `%00`.
 * A column that held unescaped texts can switch to this after its `%` signs have been escaped.
 *
 * @example
 * storableText('100 %'); // '100 %25'
 */
export function storableText(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\u0000', '%00');
}

/** Returns the text that was passed to {@link storableText}. */
export function storedText(stored: string): string {
  return stored.replaceAll('%00', '\u0000').replaceAll('%25', '%');
}
