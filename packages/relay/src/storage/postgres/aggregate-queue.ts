interface Waiting {
  readonly keys: ReadonlySet<string>;
  readonly start: () => void;
  /** Works that came later and went first. */
  overtaken: number;
}

/** How often a waiting work is overtaken, and how far back those are looked for that may. */
const maxOvertaken = 16;
const lookahead = 32;

/**
 * Lets works that share an aggregate run one after another, and others beside them. It keeps a busy
 * account from holding every connection of this process while it waits for its own lock; what
 * other processes do is the lock's business.
 *
 * Works of the same aggregates run in the order they came. A work of several waits until all are
 * free, and meanwhile others may have those that are: a strict order would have A to B, B to C and
 * C to D wait in a row, though the first and the last have nothing in common. Each is overtaken so
 * often and no more; it then keeps its place, so that everybody's turn comes.
 */
export class AggregateQueue {
  readonly #running = new Set<string>();
  /** By key, in the order they came; a work stands at each of its keys. */
  readonly #waiting = new Map<string, Waiting[]>();

  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const distinct = new Set(keys);
    await this.#turn(distinct);
    try {
      return await work();
    } finally {
      for (const key of distinct) this.#running.delete(key);
      for (const key of distinct) this.#startNext(key);
    }
  }

  #turn(keys: ReadonlySet<string>): Promise<void> | undefined {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting: Waiting = { keys, start: resolve, overtaken: 0 };
    for (const key of keys) this.#queueOf(key).push(waiting);
    if (this.#mayStart(waiting)) this.#start(waiting);
    return promise;
  }

  #queueOf(key: string): Waiting[] {
    const known = this.#waiting.get(key);
    if (known !== undefined) return known;
    const queue: Waiting[] = [];
    this.#waiting.set(key, queue);
    return queue;
  }

  /** Whether all its keys are free, and whoever waits longer for one of them lets it pass. */
  #mayStart(waiting: Waiting): boolean {
    for (const key of waiting.keys) {
      if (this.#running.has(key)) return false;
      for (const earlier of this.#queueOf(key)) {
        if (earlier === waiting) break;
        if (earlier.overtaken >= maxOvertaken || isCovered(earlier.keys, waiting.keys))
          return false;
      }
    }
    return true;
  }

  #start(waiting: Waiting): void {
    for (const key of waiting.keys) {
      this.#running.add(key);
      const queue = this.#queueOf(key);
      const place = queue.indexOf(waiting);
      for (const earlier of queue.slice(0, place)) earlier.overtaken += 1;
      queue.splice(place, 1);
      if (queue.length === 0) this.#waiting.delete(key);
    }
    waiting.start();
  }

  #startNext(key: string): void {
    const queue = this.#waiting.get(key)?.slice(0, lookahead) ?? [];
    const next = queue.find((waiting) => this.#mayStart(waiting));
    if (next !== undefined) this.#start(next);
  }
}

/** Whether a work waits for nothing the other does not wait for: it was first and could start. */
function isCovered(keys: ReadonlySet<string>, by: ReadonlySet<string>): boolean {
  for (const key of keys) if (!by.has(key)) return false;
  return true;
}
