import { keyOf, type Line } from './conversation-source.ts';

/** Compares two values of a line by their content. */
function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return false;
  const members = Object.entries(one);
  return (
    members.length === Object.keys(other).length &&
    members.every(
      ([name, value]) => Object.hasOwn(other, name) && isSame(value, Reflect.get(other, name)),
    )
  );
}

/**
 * Returns the lines that were read, each as the object that it was before if it did not change: what was made of
 * that object, such as its element, is used again. If no line changed, the list itself stays.
 */
export function keepLines(before: readonly Line[], read: readonly Line[]): readonly Line[] {
  const known = new Map(before.map((line) => [keyOf(line), line]));
  const lines = read.map((line) => {
    const held = known.get(keyOf(line));
    return held !== undefined && isSame(held, line) ? held : line;
  });
  const isUnchanged =
    lines.length === before.length && lines.every((line, index) => line === before[index]);
  return isUnchanged ? before : lines;
}
