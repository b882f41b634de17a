import type { RelayContext } from '../context.ts';

export interface ArrivalDeadlineParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
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
 * period, and for a time in all.
 */
export class ArrivalDeadline implements Disposable {
  readonly #parts: ArrivalDeadlineParts;
  #timer: Disposable | undefined;
  /** Bytes of the current period. */
  #bytes = 0;
  /** Milliseconds of the periods that ended. */
  #spent = 0;

  constructor(parts: ArrivalDeadlineParts) {
    this.#parts = parts;
  }

  /** Begins, or goes on after a pause. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = this.#parts.context.clock.after(this.#parts.period, () => this.#check());
  }

  /** Counts bytes that arrived. */
  receive(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Stops the time: the sender cannot go on. The period begins anew after it. */
  pause(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  /** Ends it: everything has arrived, or will not be read. */
  [Symbol.dispose](): void {
    this.pause();
    this.#bytes = 0;
    this.#spent = 0;
  }

  #check(): void {
    const { context, period, hasSession, expired } = this.#parts;
    const { slowMessageBytes, slowMessageTimeout } = context.limits;
    this.#timer = undefined;
    this.#spent += period;
    const isInTime = this.#bytes >= slowMessageBytes && this.#spent < slowMessageTimeout;
    if (!hasSession() || !isInTime) {
      expired();
      return;
    }
    this.#bytes = 0;
    this.start();
  }
}
