/** Work on many connections that leaves others their turn. */

/** Connections told, or looked up, before others get their turn. */
export const portion = 250;

/** Does something for each: a first portion at once, the others in turns of their own. */
export async function inTurns<T>(items: Iterable<T>, each: (item: T) => void): Promise<void> {
  let count = 0;
  for (const item of items) {
    each(item);
    count += 1;
    if (count % portion === 0) await nextTurn();
  }
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
