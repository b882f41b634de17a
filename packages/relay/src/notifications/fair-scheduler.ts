import type { Clock } from '../context.ts';

/**
 * Limit of connections that are notified in one turn of the event loop. Their hints leave after the
 * batch, so its time does not include what most of it is: to encrypt and send one takes 20 µs or more.
 */
export const batchSize = 4;

/**
 * Milliseconds after which a turn notifies no further connection. A call takes several turns and waits
 * for a batch in each of them; with shorter batches, the last hint would be sent later.
 */
export const batchMilliseconds = 0.25;

/**
 * Shares the event loop between loops over many connections: each turn processes one batch in total,
 * however many loops run, and the loops take turns in the order in which they wait.
 */
export class FairScheduler {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #budget = batchSize;
  /** When the batch of this turn ends; `undefined` before its first item. */
  #endsAt: number | undefined;
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Calls `work` for each item, within the budget of this turn and of later ones. */
  async each<T>(items: Iterable<T>, work: (item: T) => void): Promise<void> {
    for (const item of items) {
      while (this.#isSpent()) await this.#waitForBudget();
      this.#budget -= 1;
      this.#renewSoon();
      work(item);
    }
    this.#resumeNext();
  }

  #isSpent(): boolean {
    if (this.#endsAt === undefined) return false;
    return this.#budget === 0 || this.#clock.monotonic() >= this.#endsAt;
  }

  #waitForBudget(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    return promise;
  }

  #renewSoon(): void {
    if (this.#endsAt !== undefined) return;
    this.#endsAt = this.#clock.monotonic() + batchMilliseconds;
    setImmediate(() => {
      this.#endsAt = undefined;
      this.#budget = batchSize;
      this.#resumeNext();
    });
  }

  /** Gives the rest of a turn's budget to the loop that has waited longest. */
  #resumeNext(): void {
    if (!this.#isSpent()) this.#waiting.shift()?.();
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
