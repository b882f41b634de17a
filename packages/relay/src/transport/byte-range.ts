/** The part of a file that a request asks for (RFC 9110 §14). */

/** First and last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a `Range` header. A header with several ranges, of another unit or malformed is ignored, as
 * RFC 9110 §14.2 lets a server do.
 *
 * @returns `undefined` for the whole, `unsatisfiable` for a range that begins after the end
 */
export function byteRange(
  header: string | undefined,
  length: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const suffix = Math.min(Number(last), length);
    return suffix === 0 ? 'unsatisfiable' : { start: length - suffix, end: length - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= length) return 'unsatisfiable';
  return { start, end: last === '' ? length - 1 : Math.min(Number(last), length - 1) };
}
