/**
 * Milliseconds that one kind of work may take of a turn of the event loop, when there is more of it
 * than that: so no call waits long for the others.
 */
export const turnMilliseconds = 1;

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
