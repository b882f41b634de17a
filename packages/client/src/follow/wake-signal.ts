/** Wakes a running follower: there may be a new host, group or channel to follow. */
export class WakeSignal {
  #isWoken = false;
  #waiting = Promise.withResolvers<void>();

  wake(): void {
    this.#isWoken = true;
    this.#waiting.resolve();
  }

  /** Returns whether `wake` was called since the last call. */
  take(): boolean {
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    this.#waiting = Promise.withResolvers();
    return isWoken;
  }

  get isWoken(): boolean {
    return this.#isWoken;
  }

  /** Resolves when `wake` is called. */
  woken(): Promise<void> {
    return this.#waiting.promise;
  }
}
