import { nextTick } from 'node:process';
import type { Clock } from '../context.ts';

/** Milliseconds of a turn of the event loop in which more work is begun: about one large page. */
const budget = 4;

/**
 * Gives out the time of the event loop to work that takes milliseconds of it, in rotation of the
 * owners: calls of others are answered between, and an owner with many large calls delays those of
 * another by one.
 */
export class FairTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By owner, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** When the first work of this turn of the event loop began. */
  #beganAt: number | undefined;
  #isWorking = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Resolves when the owner may begin its work. */
  take(owner: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(owner);
    if (queue === undefined) this.#waiting.set(owner, [resolve]);
    else queue.push(resolve);
    if (!this.#isWorking) this.#beginNext();
    return promise;
  }

  /** Begins the next work if this turn of the event loop has time for it. */
  #beginNext(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const now = this.#clock.monotonic();
    if (this.#beganAt === undefined) {
      this.#beganAt = now;
      setImmediate(() => {
        this.#beganAt = undefined;
        if (!this.#isWorking) this.#beginNext();
      });
    } else if (now - this.#beganAt >= budget) return;
    const [owner, queue] = first;
    this.#waiting.delete(owner);
    const begin = queue.shift();
    if (queue.length > 0) this.#waiting.set(owner, queue);
    this.#isWorking = true;
    begin?.();
    // After all microtasks: the work has ended then, or waits for something.
    queueMicrotask(() =>
      nextTick(() => {
        this.#isWorking = false;
        this.#beginNext();
      }),
    );
  }
}
