interface Waiting {
  readonly keys: ReadonlySet<string>;
  readonly start: () => void;
  /** How many later tasks have started before this one. */
  overtaken: number;
}

/** Limit of how often a waiting task is overtaken, and how many queued tasks are tried per key. */
const maxOvertaken = 16;
const lookahead = 32;

/**
 * Runs tasks that share an aggregate one after another, and unrelated tasks concurrently. Without
 * it, one busy account would hold every connection of this process while each waits for the same
 * lock. Between processes, the database lock does the ordering.
 *
 * Tasks of the same aggregates run in arrival order. A task of several aggregates waits until all
 * are free; meanwhile later tasks may use those that are free already. A strict order would run
 * A to B, B to C and C to D one by one, although the first and the last share nothing. A task is
 * overtaken at most {@link maxOvertaken} times, so every task starts eventually.
 */
export class AggregateQueue {
  readonly #running = new Set<string>();
  /** By key, in arrival order; a task is listed under each of its keys. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** Runs `work` when all of `keys` are free, and returns its result. */
  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    const distinct = new Set(keys);
    await this.#waitForTurn(distinct);
    try {
      return await work();
    } finally {
      for (const key of distinct) this.#running.delete(key);
      for (const key of distinct) this.#startNext(key);
    }
  }

  #waitForTurn(keys: ReadonlySet<string>): Promise<void> | undefined {
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

  /** Whether all its keys are free, and every task that waits longer for one of them may be overtaken. */
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
      const position = queue.indexOf(waiting);
      for (const earlier of queue.slice(0, position)) earlier.overtaken += 1;
      queue.splice(position, 1);
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

/** Whether `by` contains all of `keys`: then the earlier task goes first. */
function isCovered(keys: ReadonlySet<string>, by: ReadonlySet<string>): boolean {
  for (const key of keys) if (!by.has(key)) return false;
  return true;
}
