/** As many digits as the largest safe integer has, so that texts sort as numbers do. */
const digits = 16;

/** Formats a position, epoch or sequence as a part of a key. */
export function positionKey(position: number): string {
  return String(position).padStart(digits, '0');
}

/** Makes the key of a row that belongs to an object with an ID, such as a group or channel. */
export function keyOf(id: string, ...parts: readonly (string | number)[]): string {
  const texts = parts.map((part) => (typeof part === 'number' ? positionKey(part) : part));
  return [id, ...texts].join('/');
}
