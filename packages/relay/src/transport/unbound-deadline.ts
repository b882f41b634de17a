import type { RelayContext } from '../context.ts';

export interface UnboundDeadlineParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
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
    const { context, isBusy, expired } = this.#parts;
    const { clock, limits } = context;
    this.#timer = clock.after(milliseconds, () => {
      const { unboundTimeout } = limits;
      const left = isBusy() ? unboundTimeout : this.#activeAt + unboundTimeout - clock.monotonic();
      if (left > 0) this.#wait(left);
      else expired();
    });
  }
}
