/** Classifies failures of SQLite: which are temporary, what callers and operators are told. */
import type { ProtocolError } from '@posthouse/protocol';
import { unavailable } from '../unavailable.ts';

/**
 * - `locked`: another process holds a lock on the database;
 * - `full`: the disk, or the quota of the user, has no room;
 * - `failing`: the disk cannot be read or written for another reason;
 * - `refused`: anything else, a bug among them; a retry would fail again.
 */
export type FailureKind = 'locked' | 'full' | 'failing' | 'refused';

/** Primary result codes: SQLITE_BUSY, LOCKED; FULL; IOERR, CANTOPEN. */
const kinds: ReadonlyMap<number, FailureKind> = new Map([
  [5, 'locked'],
  [6, 'locked'],
  [13, 'full'],
  [10, 'failing'],
  [14, 'failing'],
]);

/** The low byte of an extended result code is the primary one. */
const primaryCode = 0xff;

/** Classifies an error of a statement, a commit or an opening. */
export function failureKind(error: unknown): FailureKind {
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown };
  if (typeof errcode !== 'number') return 'refused';
  return kinds.get(errcode & primaryCode) ?? 'refused';
}

const reasons = {
  locked: 'another process locks the database',
  full: 'the disk is full',
  failing: 'the disk fails',
} as const;

/** Operators see when the database stops serving, and when it serves again. */
export interface SqliteObserver {
  /** A call failed for a temporary reason; called once until {@link resumed}. */
  blocked(reason: string, error: unknown): void;
  /** A write succeeded again. */
  resumed(): void;
  /** At start, the database lacks transactions that it had committed. */
  wentBack(transactions: number): void;
  /**
   * A flush of the log failed, and what the disk holds is unknown: ends the process, which then has
   * answered no write of that flush.
   */
  unflushed(error: unknown): void;
  /** The thread that copies the log has ended; from now on the event loop does its work. */
  checkpointsStopped(error: unknown): void;
  /** Pages of the database are bad. */
  damaged(problem: string): void;
  /** The check of the database's pages was given up after so many seconds. */
  pagesUnchecked(seconds: number): void;
}

/** Whether the database fails for a temporary reason now. */
export class Outage {
  readonly #observer: SqliteObserver | undefined;
  #isBlocked = false;

  constructor(observer: SqliteObserver | undefined) {
    this.#observer = observer;
  }

  /** Returns what a caller gets for a failure, and reports the first failure of an outage. */
  errorOf(error: unknown): unknown | ProtocolError {
    const kind = failureKind(error);
    if (kind === 'refused') return error;
    const reason = reasons[kind];
    if (!this.#isBlocked) this.#observer?.blocked(reason, error);
    this.#isBlocked = true;
    return unavailable(`${reason}: try again later`, { cause: error });
  }

  /** Ends the outage, after a commit. */
  end(): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.#observer?.resumed();
  }
}
