/**
 * How much of a host is read in one go. A host decides how long its timelines are, and a lying one
 * never comes to an end: what is read is counted, and what is left is read the next time.
 */
import type { Clock } from '../environment.ts';
import { RelayUnreachable } from '../errors.ts';

/** What one synchronization reads at the most. */
export interface ReadingLimits {
  /** Events of one group or channel, or records of one list. */
  readonly events: number;
  /** Pages of them, however few each page holds. */
  readonly pages: number;
  /** Milliseconds for everything at one host; what is left then is read the next time. */
  readonly time: number;
  /** Milliseconds behind that for an answer that is under way. */
  readonly grace: number;
}

export const defaultReading: ReadingLimits = {
  events: 20_000,
  pages: 2_000,
  time: 120_000,
  grace: 30_000,
};

/** What reading one group, channel or list may still take. */
export class ReadBudget {
  #events: number;
  #pages: number;
  readonly #isLate: () => boolean;

  constructor({ events, pages }: ReadingLimits, isLate: () => boolean = () => false) {
    this.#events = events;
    this.#pages = pages;
    this.#isLate = isLate;
  }

  /** Counts a page that was read. */
  spendPage(events: number): void {
    this.#events -= events;
    this.#pages -= 1;
  }

  get isSpent(): boolean {
    return this.#events <= 0 || this.#pages <= 0 || this.#isLate();
  }
}

/** The time one host gets. */
export interface TimeLimit {
  /** Also aborts where an answer is still under way long after the time is over. */
  readonly signal: AbortSignal;
  /** Whether no further page is to be asked for. */
  readonly isReached: () => boolean;
}

/** A visit that lasts as long as whoever asked for it wants. */
export function noTimeLimit(signal: AbortSignal): TimeLimit {
  return { signal, isReached: () => false };
}

/**
 * Visits a host for a limited time. Between pages reading stops by itself; the signal is for an
 * answer that does not come.
 *
 * @throws RelayUnreachable as the signal's reason
 */
export async function* withTimeLimit<T>(
  { clock, reading }: { readonly clock: Clock; readonly reading: ReadingLimits },
  signal: AbortSignal,
  work: (visit: TimeLimit) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const over = clock.milliseconds() + reading.time;
  const isOver = () => clock.milliseconds() >= over;
  const late = new AbortController();
  const done = new AbortController();
  const reason = new RelayUnreachable('the host takes too long', { outcomeUnknown: true });
  void clock.sleep(reading.time + reading.grace, done.signal).then(
    () => late.abort(reason),
    () => undefined,
  );
  try {
    yield* work({ signal: AbortSignal.any([signal, late.signal]), isReached: isOver });
  } finally {
    done.abort();
  }
}

/** Rows in the order in which they are read: what was left with more to read comes last. */
export function byLastInterrupted(
  a: { readonly leftAt?: number },
  b: { readonly leftAt?: number },
): number {
  return (a.leftAt ?? 0) - (b.leftAt ?? 0);
}
