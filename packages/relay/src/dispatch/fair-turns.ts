/**
 * Gives out the turns of the event loop to work that takes milliseconds of it, one to each turn and
 * to each owner in rotation: calls of others are answered between, and an owner with many large
 * calls delays those of another by one.
 */
export class FairTurns {
  /** By owner, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isTaken = false;

  /** Resolves when it is the owner's turn. */
  take(owner: string): Promise<void> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      setImmediate(() => this.#next());
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(owner);
    if (queue === undefined) this.#waiting.set(owner, [resolve]);
    else queue.push(resolve);
    return promise;
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#isTaken = false;
      return;
    }
    const [owner, queue] = first;
    this.#waiting.delete(owner);
    queue.shift()?.();
    if (queue.length > 0) this.#waiting.set(owner, queue);
    setImmediate(() => this.#next());
  }
}
