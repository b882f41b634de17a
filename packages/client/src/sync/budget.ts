/**
 * Limits of one synchronization. A host decides how long its timelines are, and a lying host never
 * ends one: events and pages are counted, and the rest is read by the next synchronization.
 */
import type { Clock } from '../environment.ts';
import { RelayUnreachable } from '../errors.ts';

/** Upper limits of what one synchronization reads. */
export interface ReadingLimits {
  /** Events of one group or channel, or records of one list. */
  readonly events: number;
  /** Pages of one group, channel or list, however few events each page holds. */
  readonly pages: number;
  /** Milliseconds per host; the rest is read by the next synchronization. */
  readonly time: number;
  /** Additional milliseconds for a call that has already started. */
  readonly grace: number;
}

export const defaultReading: ReadingLimits = {
  events: 20_000,
  pages: 2_000,
  time: 120_000,
  grace: 30_000,
};

/** Counts what reading one group, channel or list may still read. */
export class ReadBudget {
  #events: number;
  #pages: number;
  readonly #isLate: () => boolean;

  constructor({ events, pages }: ReadingLimits, isLate: () => boolean = () => false) {
    this.#events = events;
    this.#pages = pages;
    this.#isLate = isLate;
  }

  /** Subtracts a page that was read. */
  spendPage(events: number): void {
    this.#events -= events;
    this.#pages -= 1;
  }

  get isSpent(): boolean {
    return this.#events <= 0 || this.#pages <= 0 || this.#isLate();
  }
}

/** The time limit of reading one host. */
export interface TimeLimit {
  /** Aborts a call that is still running when limit and grace period are over. */
  readonly signal: AbortSignal;
  /** Whether no further page may be requested. */
  readonly isReached: () => boolean;
}

/** The limit of catching up one group or channel. */
export interface CatchUpLimit extends TimeLimit {
  /** Whether waiting messages are sent in the background; else they are sent before it is read. */
  readonly sendsInBackground?: boolean;
}

/** Returns a limit that is never reached; only the caller's signal ends the work. */
export function noTimeLimit(signal: AbortSignal): TimeLimit {
  return { signal, isReached: () => false };
}

/**
 * Runs work on one host with a time limit. Work stops by itself between pages; the signal aborts a
 * call that gets no answer.
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
  const reason = new RelayUnreachable('the host takes too long: synchronize again later', {
    outcomeUnknown: true,
  });
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

/** Compares rows for the read order: rows interrupted last time come last. */
export function byLastInterrupted(
  a: { readonly leftAt?: number },
  b: { readonly leftAt?: number },
): number {
  return (a.leftAt ?? 0) - (b.leftAt ?? 0);
}
