import { type ClientError, isClientError } from '../errors.ts';
import type { Visit } from './budget.ts';
import { isSilence } from './host-calls.ts';

/** One host while it is read. */
export class HostVisit implements Visit {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly isOver: () => boolean;
  readonly #isHome: boolean;
  /** Whoever asked for all of it; the visit itself may end earlier. */
  readonly #asker: AbortSignal;
  #silence: ClientError | undefined;

  constructor(
    place: { readonly host: string; readonly isHome: boolean },
    { signal, isOver }: Visit,
    asker: AbortSignal,
  ) {
    this.host = place.host;
    this.#isHome = place.isHome;
    this.signal = signal;
    this.isOver = isOver;
    this.#asker = asker;
  }

  /** A host that did not answer just now is not asked again for each of its groups. */
  checkAnswers(): void {
    if (this.#silence !== undefined) throw this.#silence;
  }

  /**
   * What failed for one group or channel of it.
   * @throws whatever concerns more than that: an abort, a silent home relay, a fault of the program
   */
  failureOf(error: unknown): ClientError {
    this.#asker.throwIfAborted();
    if (!isClientError(error)) throw error;
    if (isSilence(error)) {
      if (this.#isHome) throw error;
      this.#silence = error;
    }
    return error;
  }
}
