/**
 * Lets works of the same aggregate run one after another, in the order they came, and others
 * beside them. It keeps a busy account from holding every connection of this process while it
 * waits for its own lock; what other processes do is the lock's business.
 */
export class AggregateQueue {
  /** The last work of each key that is not over. */
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    // All keys at once, before anything is awaited: whoever came first is before the other one at
    // every key they share, so nobody waits in a circle.
    const before = keys.map((key) => this.#last.get(key));
    const over = Promise.withResolvers<void>();
    for (const key of keys) this.#last.set(key, over.promise);
    try {
      await Promise.all(before);
      return await work();
    } finally {
      over.resolve();
      for (const key of keys) {
        if (this.#last.get(key) === over.promise) this.#last.delete(key);
      }
    }
  }
}
