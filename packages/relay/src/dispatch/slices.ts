import { turnMilliseconds } from '../event-loop.ts';
import { Rotation } from '../rotation.ts';

/** Texts of so many UTF-16 units and more are parsed in slices; shorter ones at once. */
export const largeText = 65_536;

/** Work that pauses itself now and then. */
export type Steps<T> = Generator<undefined, T, undefined>;

/**
 * Runs long work on the event loop without holding it: in each turn of the loop a millisecond of steps,
 * in rotation of those who pay for the works, however many there are.
 */
export class Slices {
  readonly #waiting = new Rotation<() => void>();
  #isScheduled = false;

  /** Runs work of an owner to its end; throws what it throws. */
  run<T>(owner: string, steps: Steps<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const step = () => {
      try {
        const { done, value } = steps.next();
        if (done === true) resolve(value);
        else this.#add(owner, step);
      } catch (error) {
        reject(error);
      }
    };
    this.#add(owner, step);
    return promise;
  }

  #add(owner: string, step: () => void): void {
    this.#waiting.add(owner, step);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#work());
  }

  #work(): void {
    const began = performance.now();
    do this.#waiting.take()?.();
    while (!this.#waiting.isEmpty && performance.now() - began < turnMilliseconds);
    this.#isScheduled = !this.#waiting.isEmpty;
    if (this.#isScheduled) setImmediate(() => this.#work());
  }
}
