/** Passes what several readers find to one consumer, who is waited for. */
export class AsyncQueue<T> {
  readonly #waiting: { readonly item: T; readonly done: () => void }[] = [];
  #isClosed = false;
  #failure: { readonly cause: unknown } | undefined;
  #arrived = Promise.withResolvers<void>();

  /** Resolves once the consumer has dealt with the item, or takes no more. */
  put(item: T): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (this.#isClosed) resolve();
    else this.#waiting.push({ item, done: resolve });
    this.#arrived.resolve();
    return promise;
  }

  /** Nothing more is taken; what waits is still given. */
  close(): void {
    this.#isClosed = true;
    this.#arrived.resolve();
  }

  /** The same, with an error that the consumer gets at the end. */
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

  /** Lets go of everybody who waits for the consumer. */
  discard(): void {
    this.close();
    for (const { done } of this.#waiting.splice(0)) done();
  }
}
