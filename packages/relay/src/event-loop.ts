/**
 * Milliseconds that one kind of work may take of a turn of the event loop, when there is more of it
 * than that: so no call waits long for the others.
 */
export const turnMilliseconds = 1;

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Measures the time of one kind of work in a turn. */
export class TurnTime {
  #began = performance.now();

  /** Whether the work must go on in the next turn. */
  get isOver(): boolean {
    return performance.now() - this.#began >= turnMilliseconds;
  }

  /** Resolves in the next turn, and begins to measure anew. */
  async next(): Promise<void> {
    await nextTurn();
    this.#began = performance.now();
  }
}

/** Does work that is due at one moment for many, in slices of the event loop. */
export async function inTurns<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
  const turn = new TurnTime();
  for (const item of items) {
    if (turn.isOver) await turn.next();
    work(item);
  }
}
