/** As many digits as the largest safe integer has, so that texts sort as numbers do. */
const digits = 16;

/** A position, epoch or sequence, as part of a key. */
export function positionKey(position: number): string {
  return String(position).padStart(digits, '0');
}

/** A key of a row that belongs to something with an ID: a group, a channel. */
export function keyOf(id: string, ...parts: readonly (string | number)[]): string {
  const texts = parts.map((part) => (typeof part === 'number' ? positionKey(part) : part));
  return [id, ...texts].join('/');
}
