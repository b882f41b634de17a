import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteOwner } from './byte-ledger.ts';

export interface HeaderDeadlineParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: Pick<ByteAccounts, 'dueTurns'>;
  /** In whose turn it expires. */
  readonly owner: ByteOwner;
  /** Called once if the headers do not arrive in time. */
  readonly expired: () => void;
}

/**
 * Bounds how long the headers of a request may be unfinished on one HTTP connection (02 §18).
 *
 * Headers that arrive in one piece need no time, and those in several share a timer: it goes on when the headers are
 * whole, and measures what is left for the next ones when it is due.
 */
export class HeaderDeadline implements Disposable {
  readonly #parts: HeaderDeadlineParts;
  #timer: Disposable | undefined;
  /** When the headers began, monotonic milliseconds; absent while none are unfinished. */
  #startedAt: number | undefined;
  #isDisposed = false;

  constructor(parts: HeaderDeadlineParts) {
    this.#parts = parts;
  }

  /** Begins the time of headers, if it has not begun. */
  start(): void {
    if (this.#startedAt !== undefined || this.#isDisposed) return;
    const { clock, limits } = this.#parts.context;
    this.#startedAt = clock.monotonic();
    if (this.#timer === undefined) this.#wait(limits.requestTimeout);
  }

  /** Ends the time: the headers are whole, or their sender is not late. */
  stop(): void {
    this.#startedAt = undefined;
  }

  /** Ends the time for good. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.stop();
    this.#timer?.[Symbol.dispose]();
  }

  #wait(milliseconds: number): void {
    this.#timer = this.#parts.context.clock.after(milliseconds, () => {
      const { bytes, owner } = this.#parts;
      if (!this.#isOver) this.#goOn();
      else {
        bytes.dueTurns.run(payerKey(owner), () => {
          this.#goOn();
          return false;
        });
      }
    });
  }

  get #isOver(): boolean {
    return this.#startedAt !== undefined && this.#leftFrom(this.#startedAt) <= 0;
  }

  #goOn(): void {
    this.#timer = undefined;
    if (this.#startedAt === undefined) return;
    const left = this.#leftFrom(this.#startedAt);
    if (left > 0) {
      this.#wait(left);
      return;
    }
    this[Symbol.dispose]();
    this.#parts.expired();
  }

  #leftFrom(startedAt: number): number {
    const { clock, limits } = this.#parts.context;
    return startedAt + limits.requestTimeout - clock.monotonic();
  }
}
