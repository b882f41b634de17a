import { Rotation } from '../rotation.ts';

/** Texts of so many UTF-16 units and more are parsed in slices; shorter ones at once. */
export const largeText = 65_536;

/** Work that pauses itself now and then. */
export type Steps<T> = Generator<undefined, T, undefined>;

/**
 * Runs long work on the event loop without holding it: in each turn of the loop one step of one work,
 * in rotation of those who pay for it, however many works there are. One value for all callers of a
 * process.
 */
export class Slices {
  readonly #waiting = new Rotation<() => void>();
  #isScheduled = false;

  /** Runs work of an owner to its end; throws what it throws. */
  async run<T>(owner: string, steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.#turn(owner);
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  #turn(owner: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(owner, resolve);
    this.#schedule();
    return promise;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.take()?.();
      if (!this.#waiting.isEmpty) this.#schedule();
    });
  }
}
