import { Queue } from '../queue.ts';

/** Texts of so many UTF-16 units and more are parsed in slices; shorter ones at once. */
export const largeText = 65_536;

/** Work that pauses itself now and then. */
export type Steps<T> = Generator<undefined, T, undefined>;

/**
 * Runs long work on the event loop without holding it: in each turn of the loop one step of one work,
 * in turn, however many there are. One value for all callers of a process.
 */
export class Slices {
  readonly #waiting = new Queue<() => void>();
  #isScheduled = false;

  /** Runs work to its end; throws what it throws. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.#turn();
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  #turn(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.shift()?.();
      if (this.#waiting.size > 0) this.#schedule();
    });
  }
}
