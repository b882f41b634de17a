import type { Clock } from '../context.ts';

/**
 * Connections notified in one turn of the event loop. Encrypting and sending a hint takes about
 * 20 µs, so a turn takes less than a millisecond, about as long as a call. With 250 per turn, calls
 * waited several milliseconds, and the last hint was hardly sent earlier.
 */
export const batchSize = 32;

/**
 * Shares the event loop between loops over many connections: each turn processes one batch in total,
 * however many loops run, and the loops take turns in the order in which they wait.
 */
export class FairScheduler {
  #budget = batchSize;
  #isRenewalDue = false;
  readonly #waiting: (() => void)[] = [];

  /** Calls `work` for each item, within the budget of this turn and of later ones. */
  async each<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    for (const item of items) {
      while (this.#budget === 0) await this.#waitForBudget();
      this.#budget -= 1;
      this.#renewSoon();
      work(item);
    }
    this.#resumeNext();
  }

  #waitForBudget(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }

  #renewSoon(): void {
    if (this.#isRenewalDue) return;
    this.#isRenewalDue = true;
    setImmediate(() => {
      this.#isRenewalDue = false;
      this.#budget = batchSize;
      this.#resumeNext();
    });
  }

  /** Gives the rest of a turn's budget to the loop that has waited longest. */
  #resumeNext(): void {
    if (this.#budget > 0) this.#waiting.shift()?.();
  }
}

/** Milliseconds; shorter work is not followed by a pause. */
const minimumPause = 1;

/**
 * Waits as long as the work since `began` has taken, so that repeated work uses at most half of the
 * time, and changes that arrive meanwhile are merged.
 *
 * @param began start of the work, in milliseconds of the clock's `monotonic`
 */
export async function pauseAfter(
  clock: Pick<Clock, 'after' | 'monotonic'>,
  began: number,
): Promise<void> {
  const took = clock.monotonic() - began;
  if (took >= minimumPause) await new Promise<void>((resolve) => clock.after(took, resolve));
}
