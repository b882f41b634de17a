import { isClientError, type PlainError } from '../errors.ts';
import type { TimeLimit } from './budget.ts';
import { isHostUnavailable } from './host-calls.ts';

/** One host while it is read: remembers that it is unavailable, and sorts errors by their scope. */
export class HostVisit implements TimeLimit {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly isReached: () => boolean;
  /** Whether waiting messages are sent in the background: then one that is stuck delays no reading. */
  readonly sendsInBackground: boolean;
  readonly #isHome: boolean;
  /** Signal of the whole synchronization; the visit itself may end earlier. */
  readonly callerSignal: AbortSignal;
  #unavailable: PlainError | undefined;

  constructor(
    address: {
      readonly host: string;
      readonly isHome: boolean;
      readonly sendsInBackground: boolean;
    },
    { signal, isReached }: TimeLimit,
    callerSignal: AbortSignal,
  ) {
    this.host = address.host;
    this.#isHome = address.isHome;
    this.sendsInBackground = address.sendsInBackground;
    this.signal = signal;
    this.isReached = isReached;
    this.callerSignal = callerSignal;
  }

  /** Throws the stored error if the host did not answer before: its other groups are not asked. */
  throwIfUnavailable(): void {
    if (this.#unavailable !== undefined) throw this.#unavailable;
  }

  /**
   * Returns the error of one group or channel, to be reported as an event.
   * @throws the error if it concerns more: an abort, an unavailable home relay, a program error
   */
  failureOf(error: unknown): PlainError {
    this.callerSignal.throwIfAborted();
    if (!isClientError(error)) throw error;
    if (isHostUnavailable(error)) {
      if (this.#isHome) throw error;
      this.#unavailable = error;
    }
    return error;
  }
}
