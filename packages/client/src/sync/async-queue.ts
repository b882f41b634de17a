/** A queue from several producers to one consumer; producers wait until an item is consumed. */
export class AsyncQueue<T> {
  readonly #waiting: { readonly item: T; readonly done: () => void }[] = [];
  #isClosed = false;
  #failure: { readonly cause: unknown } | undefined;
  #arrived = Promise.withResolvers<void>();

  /** Resolves after the consumer has processed the item, or when the queue is closed. */
  put(item: T): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#isClosed) resolve();
    else this.#waiting.push({ item, done: resolve });
    this.#arrived.resolve();
    return promise;
  }

  /** Accepts no more items; queued items are still delivered. */
  close(): void {
    this.#isClosed = true;
    this.#arrived.resolve();
  }

  /** Closes the queue with an error that is thrown after the last item. */
  fail(cause: unknown): void {
    this.#failure ??= { cause };
    this.close();
  }

  async *items(): AsyncGenerator<T> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        try {
          yield next.item;
        } finally {
          next.done();
        }
      } else if (this.#isClosed) {
        if (this.#failure !== undefined) throw this.#failure.cause;
        return;
      } else {
        this.#arrived = Promise.withResolvers();
        await this.#arrived.promise;
      }
    }
  }

  /** Closes the queue and drops its items, so that no producer waits any more. */
  discard(): void {
    this.close();
    for (const { done } of this.#waiting.splice(0)) done();
  }
}
