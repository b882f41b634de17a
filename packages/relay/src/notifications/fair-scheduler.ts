import type { Clock } from '../context.ts';

/**
 * Connections that are told in one turn of the event loop. Encrypting a hint and handing it to the
 * network takes some 20 µs, so that a turn takes less than a millisecond, about what a call takes:
 * with 250 of them, calls waited several milliseconds, and the last hint left hardly earlier.
 */
export const batchSize = 32;

/**
 * Work on many connections that leaves others their turn. However many audiences are told at once,
 * one turn takes a portion of it all; whoever has more to tell waits behind those who wait already.
 */
export class FairScheduler {
  #left = batchSize;
  #isRenewing = false;
  readonly #waiting: (() => void)[] = [];

  /** Does something for each: at once what this turn has left, the rest in later turns. */
  async each<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    for (const item of items) {
      while (this.#left === 0) await this.#later();
      this.#left -= 1;
      this.#renewSoon();
      work(item);
    }
    this.#pass();
  }

  #later(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }

  #renewSoon(): void {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    setImmediate(() => {
      this.#isRenewing = false;
      this.#left = batchSize;
      this.#pass();
    });
  }

  /** What is left of a turn goes to whoever waits longest. */
  #pass(): void {
    if (this.#left > 0) this.#waiting.shift()?.();
  }
}

/** Milliseconds; what took less goes on at once. */
const minimumPause = 1;

/**
 * Waits as long as has passed since `began`: what comes again and again takes half of the time at
 * the most, and whatever happens meanwhile becomes one.
 *
 * @param began milliseconds of the clock's `monotonic`
 */
export async function pauseAfter(
  clock: Pick<Clock, 'after' | 'monotonic'>,
  began: number,
): Promise<void> {
  const took = clock.monotonic() - began;
  if (took >= minimumPause) await new Promise<void>((resolve) => clock.after(took, resolve));
}

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
