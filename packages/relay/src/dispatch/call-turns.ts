import { nextTick } from 'node:process';
import type { Clock } from '../context.ts';
import { turnMilliseconds } from '../event-loop.ts';
import { Rotation } from '../rotation.ts';

/**
 * Calls begun in one turn at most, of which each takes some of a later turn too. More of them share a
 * transaction's flush; one that makes a page counts as eight.
 */
const callsPerTurn = 64;
const callsOfPage = 8;
/**
 * Calls that an owner begins one after another, if they make no page: requests that arrived together
 * are then answered together, in one write.
 */
const callsOfOwner = 8;
/**
 * Milliseconds after which an owner begins no further call in its turn. Calls that take a millisecond
 * with what follows would make a round long, and an account that reads a page now and then uses up its
 * share of a long one.
 */
const ownerMilliseconds = 2;

interface Waiting {
  readonly calls: number;
  readonly begin: () => void;
}

/**
 * Begins calls in rotation of those who pay for them, a few in each turn of the event loop: so a turn
 * stays short, and accounts with many calls delay the first one of another by a few, however many
 * they are.
 */
export class CallTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #waiting = new Rotation<Waiting>(callsOfOwner);
  /** When the first call of this turn of the event loop began. */
  #beganAt: number | undefined;
  #begun = 0;
  /** When the turn of the present owner began. */
  #ownerBeganAt = 0;
  #isWorking = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Resolves when the owner may begin a call. */
  take(owner: string, isPage = false): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(owner, { calls: isPage ? callsOfPage : 1, begin: resolve });
    if (!this.#isWorking) this.#beginNext();
    return promise;
  }

  /** Counts the call that began last as one that makes a page. */
  countPage(): void {
    this.#begun += callsOfPage - 1;
    this.#waiting.countTurn();
  }

  /**
   * Counts a page that was made as so many calls, at most as the eight that it counted as until then:
   * an owner that reads small pages now and then is served before those with many calls.
   */
  pageMade(owner: string, calls: number): void {
    this.#waiting.refund(owner, Math.max(0, callsOfPage - calls));
  }

  /** Begins the next call if this turn of the event loop has time for it. */
  #beginNext(): void {
    if (this.#waiting.isEmpty) return;
    const now = this.#clock.monotonic();
    if (this.#beganAt === undefined) {
      this.#beganAt = now;
      this.#begun = 0;
      setImmediate(() => {
        this.#beganAt = undefined;
        this.#waiting.forgetLast();
        if (!this.#isWorking) this.#beginNext();
      });
    } else if (now - this.#beganAt >= turnMilliseconds || this.#begun >= callsPerTurn) return;
    this.#isWorking = true;
    if (now - this.#ownerBeganAt >= ownerMilliseconds) this.#waiting.endTurn();
    const { turns } = this.#waiting;
    const next = this.#waiting.take();
    if (this.#waiting.turns !== turns) this.#ownerBeganAt = now;
    this.#begun += next?.calls ?? 0;
    if (next?.calls === callsOfPage) this.#waiting.countTurn();
    next?.begin();
    // After all microtasks: the call has ended then, or waits for something.
    queueMicrotask(() =>
      nextTick(() => {
        this.#isWorking = false;
        this.#beginNext();
      }),
    );
  }
}
