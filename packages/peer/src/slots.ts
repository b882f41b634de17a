/** A number of things that may be in use at once; requests wait in their order. */
export class Slots {
  #free: number;
  readonly #waiters: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Takes one if it is free. */
  tryTake(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Waits for one and takes it. @throws the signal's reason when it aborts */
  take(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const grant = () => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const stop = () => {
        this.#waiters.splice(this.#waiters.indexOf(grant), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#waiters.push(grant);
    });
  }

  /** Gives one back. */
  give(): void {
    const next = this.#waiters.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
