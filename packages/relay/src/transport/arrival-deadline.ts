import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteOwner } from './byte-ledger.ts';

export interface ArrivalDeadlineParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: Pick<ByteAccounts, 'dueTurns'>;
  /** Returns in whose turn it expires. */
  readonly owner: () => ByteOwner;
  /** Milliseconds in which the whole has to arrive, or with a session, a part of it. */
  readonly period: number;
  /** Whether the sender has a session now. */
  readonly hasSession: () => boolean;
  /** Called once if what was begun does not arrive in time. */
  readonly expired: () => void;
}

/**
 * Bounds how long a message or body may stay unfinished (02 §18): one period for strangers; for
 * senders with a session, whose connections may be slow, as long as enough of it arrives in each
 * period. Pauses do not count for a period, but for the time in all, which no sender exceeds.
 */
export class ArrivalDeadline implements Disposable {
  readonly #parts: ArrivalDeadlineParts;
  /** Of the time in all, from the first start. */
  #whole: Disposable | undefined;
  /** Of the current period; absent in a pause. */
  #timer: Disposable | undefined;
  /** Milliseconds that are left of the current period when it starts, or goes on. */
  #left: number;
  #startedAt = 0;
  /** Bytes of the current period. */
  #bytes = 0;
  /** Whether it has expired, and waits for its turn. */
  #isDue = false;
  #isDisposed = false;

  constructor(parts: ArrivalDeadlineParts) {
    this.#parts = parts;
    this.#left = parts.period;
  }

  /** Begins, or goes on after a pause. */
  start(): void {
    if (this.#timer !== undefined || this.#isDue || this.#isDisposed) return;
    const { clock, limits } = this.#parts.context;
    this.#whole ??= clock.after(limits.slowMessageTimeout, () => this.#expire());
    this.#startedAt = clock.monotonic();
    this.#timer = clock.after(this.#left, () => this.#check());
  }

  /** Counts bytes that arrived. */
  receive(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Stops the time of the period: the sender cannot go on. */
  pause(): void {
    if (this.#timer === undefined) return;
    this.#timer[Symbol.dispose]();
    this.#timer = undefined;
    const spent = this.#parts.context.clock.monotonic() - this.#startedAt;
    this.#left = Math.max(0, this.#left - spent);
  }

  /** Ends the time: everything has arrived. The next start begins anew. */
  reset(): void {
    this.#isDue = false;
    this.pause();
    this.#whole?.[Symbol.dispose]();
    this.#whole = undefined;
    this.#beginPeriod();
  }

  /** Ends the time for good: nothing more will be read. */
  [Symbol.dispose](): void {
    this.reset();
    this.#isDisposed = true;
  }

  #beginPeriod(): void {
    this.#left = this.#parts.period;
    this.#bytes = 0;
  }

  #check(): void {
    const { context, hasSession } = this.#parts;
    this.#timer = undefined;
    if (!hasSession() || this.#bytes < context.limits.slowMessageBytes) {
      this.#expire();
      return;
    }
    this.#beginPeriod();
    this.start();
  }

  #expire(): void {
    const { bytes, owner, expired } = this.#parts;
    this.reset();
    this.#isDue = true;
    bytes.dueTurns.run(payerKey(owner()), () => {
      if (this.#isDue) {
        this.reset();
        expired();
      }
      return false;
    });
  }
}
