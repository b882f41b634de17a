import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteOwner } from './byte-ledger.ts';

export interface UnboundDeadlineParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: Pick<ByteAccounts, 'dueTurns'>;
  /** In whose turn it expires. */
  readonly owner: ByteOwner;
  /** Whether requests are under way. */
  readonly isBusy: () => boolean;
  /** Called when the connection had no session and made no accepted call for too long. */
  readonly expired: () => void;
}

/** Bounds how long a WebSocket may be open without a session and without accepted calls (02 §18). */
export class UnboundDeadline {
  readonly #parts: UnboundDeadlineParts;
  #timer: Disposable | undefined;
  /** When a call was accepted, or the time without a session began; monotonic milliseconds. */
  #activeAt = 0;

  constructor(parts: UnboundDeadlineParts) {
    this.#parts = parts;
  }

  /** Whether the connection has no session. */
  get isRunning(): boolean {
    return this.#timer !== undefined;
  }

  /** Begins the time without a session. */
  start(): void {
    this.renew();
    this.#wait(this.#parts.context.limits.unboundTimeout);
  }

  /** Begins the time anew: a call was accepted. */
  renew(): void {
    this.#activeAt = this.#parts.context.clock.monotonic();
  }

  /** Ends the time: the connection has a session, or is over. */
  stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #wait(milliseconds: number): void {
    const { bytes, context, owner } = this.#parts;
    const timer = context.clock.after(milliseconds, () =>
      bytes.dueTurns.run(payerKey(owner), () => {
        // It may have been stopped while it waited for its turn.
        if (this.#timer === timer) this.#check();
        return false;
      }),
    );
    this.#timer = timer;
  }

  #check(): void {
    const { context, isBusy, expired } = this.#parts;
    const { unboundTimeout } = context.limits;
    const now = context.clock.monotonic();
    const left = isBusy() ? unboundTimeout : this.#activeAt + unboundTimeout - now;
    if (left > 0) this.#wait(left);
    else expired();
  }
}
