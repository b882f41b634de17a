import { type ClientError, isClientError } from '../errors.ts';
import type { TimeLimit } from './budget.ts';
import { isHostUnavailable } from './host-calls.ts';

/** One host while it is read. */
export class HostVisit implements TimeLimit {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly isReached: () => boolean;
  readonly #isHome: boolean;
  /** Whoever asked for all of it; the visit itself may end earlier. */
  readonly #callerSignal: AbortSignal;
  #unavailable: ClientError | undefined;

  constructor(
    place: { readonly host: string; readonly isHome: boolean },
    { signal, isReached }: TimeLimit,
    callerSignal: AbortSignal,
  ) {
    this.host = place.host;
    this.#isHome = place.isHome;
    this.signal = signal;
    this.isReached = isReached;
    this.#callerSignal = callerSignal;
  }

  /** A host that did not answer just now is not asked again for each of its groups. */
  throwIfUnavailable(): void {
    if (this.#unavailable !== undefined) throw this.#unavailable;
  }

  /**
   * What failed for one group or channel of it.
   * @throws whatever concerns more than that: an abort, a silent home relay, a fault of the program
   */
  failureOf(error: unknown): ClientError {
    this.#callerSignal.throwIfAborted();
    if (!isClientError(error)) throw error;
    if (isHostUnavailable(error)) {
      if (this.#isHome) throw error;
      this.#unavailable = error;
    }
    return error;
  }
}
