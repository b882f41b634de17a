/**
 * A number of things that may be in use at once; requests wait in their order.
 *
 * @example
 * const slots = new Slots(48);
 * await slots.take(AbortSignal.timeout(1_000));
 * slots.give();
 */
export class Slots {
  #limit: number;
  #used = 0;
  readonly #waiting = new Set<() => void>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** Number of requests that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Changes how many may be in use; those above it stay in use until they are given back. */
  resize(limit: number): void {
    this.#limit = limit;
    this.#grant();
  }

  /** Takes one if it is free. */
  tryTake(): boolean {
    if (this.#used >= this.#limit) return false;
    this.#used += 1;
    return true;
  }

  /**
   * Waits for one and takes it.
   *
   * @returns how many were in use then, with this one
   * @throws the signal's reason when it aborts
   */
  take(signal: AbortSignal): Promise<number> {
    if (!signal.aborted && this.tryTake()) return Promise.resolve(this.#used);
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const grant = () => {
        signal.removeEventListener('abort', stop);
        resolve(this.#used);
      };
      const stop = () => {
        this.#waiting.delete(grant);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#waiting.add(grant);
    });
  }

  /** Gives one back. */
  give(): void {
    this.#used -= 1;
    this.#grant();
  }

  #grant(): void {
    for (const grant of this.#waiting) {
      if (!this.tryTake()) return;
      this.#waiting.delete(grant);
      grant();
    }
  }
}
