import type { Clock } from '../../context.ts';
import type { RelayLimits } from '../../limits.ts';

interface CallWindowOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly limits: Pick<RelayLimits, 'relayCallsAtOnce' | 'relayCallsFirst' | 'relayCallsHold'>;
}

/** Queries that a client waits for take the next place; at the most so many before a delivery. */
export type CallKind = 'query' | 'delivery';
const queriesInARow = 7;

/** The place of one call in the window; disposing of it gives it back. */
export interface CallPlace extends Disposable {
  /** Calls under way when it began, with itself. */
  readonly atOnce: number;
  /** Counts the calls of the window. */
  readonly number: number;
}

/**
 * How many calls to one relay are under way at once. Other relays limit the streams of a connection,
 * and reset those above, without saying how many they allow. So the window grows by one with each
 * answer while calls fill it, and a reset halves it. A reset also tells how many were too many,
 * unless as many were answered before: for a while the window does not grow to as many again, and
 * afterwards by one for a whole window of answers.
 *
 * Answers do not change it: what a refusal says may be about one account, and the messages of one
 * account must not delay those of others.
 */
export class CallWindow {
  readonly #clock: CallWindowOptions['clock'];
  readonly #limits: CallWindowOptions['limits'];
  readonly #waiting = { query: new Set<() => void>(), delivery: new Set<() => void>() };
  #used = 0;
  /** Queries that took a place since the last delivery that waited. */
  #queries = 0;
  #size: number;
  /** Fewer than were too many when a stream was reset. */
  #known: number;
  /** The most of which one was answered, since a reset at as many. */
  #answeredAtOnce = 0;
  /** Until when the window does not grow past `#known`, monotonic milliseconds. */
  #holdUntil = 0;
  /** Answers since the window grew, past `#known`. */
  #answers = 0;
  #begun = 0;
  /** Calls that had begun when the window was halved: their resets have the same cause. */
  #begunAtReset = 0;

  constructor({ clock, limits }: CallWindowOptions) {
    this.#clock = clock;
    this.#limits = limits;
    this.#known = limits.relayCallsAtOnce;
    this.#size = Math.min(limits.relayCallsFirst, this.#known);
  }

  /** Calls that may be under way at once. */
  get size(): number {
    return this.#size;
  }

  /** Calls under way or waiting. */
  get calls(): number {
    return this.#used + this.#waiting.query.size + this.#waiting.delivery.size;
  }

  /** Waits for a place; queries do not wait for deliveries. @throws the signal's reason */
  async take(kind: CallKind, signal: AbortSignal): Promise<CallPlace> {
    signal.throwIfAborted();
    const waiting = this.#waiting[kind];
    const granted = Promise.withResolvers<CallPlace>();
    const grant = () => {
      signal.removeEventListener('abort', stop);
      this.#used += 1;
      this.#begun += 1;
      const give = { [Symbol.dispose]: () => this.#give() };
      granted.resolve({ atOnce: this.#used, number: this.#begun, ...give });
    };
    const stop = () => {
      waiting.delete(grant);
      granted.reject(signal.reason);
    };
    signal.addEventListener('abort', stop, { once: true });
    waiting.add(grant);
    this.#grant();
    return await granted.promise;
  }

  /** Records that the relay answered a call. */
  answered({ atOnce }: CallPlace): void {
    this.#answeredAtOnce = Math.max(this.#answeredAtOnce, atOnce);
    if (2 * atOnce <= this.#size || this.#size >= this.#limits.relayCallsAtOnce) return;
    if (this.#size >= this.#known) {
      if (this.#clock.monotonic() < this.#holdUntil) return;
      this.#answers += 1;
      if (this.#answers < this.#size) return;
    }
    this.#resize(this.#size + 1);
  }

  /** Records that the relay reset the stream of a call while others were under way. */
  reset({ atOnce, number }: CallPlace): void {
    const isFirst = number > this.#begunAtReset;
    if (atOnce > this.#answeredAtOnce) {
      const fewer = Math.max(1, atOnce - 1);
      this.#known = isFirst ? fewer : Math.min(this.#known, fewer);
      this.#holdUntil = this.#clock.monotonic() + this.#limits.relayCallsHold * 1_000;
    }
    let size = Math.min(this.#size, this.#known);
    if (isFirst) {
      this.#begunAtReset = this.#begun;
      this.#answeredAtOnce = Math.min(this.#answeredAtOnce, atOnce - 1);
      size = Math.min(size, Math.ceil(atOnce / 2));
    }
    this.#resize(size);
  }

  /** Records that the relay did not answer: it begins again with few. */
  failed(): void {
    this.#resize(Math.min(this.#size, this.#limits.relayCallsFirst));
  }

  #resize(size: number): void {
    this.#size = size;
    this.#answers = 0;
    this.#grant();
  }

  #give(): void {
    this.#used -= 1;
    this.#grant();
  }

  #grant(): void {
    const { query, delivery } = this.#waiting;
    while (this.#used < this.#size && query.size + delivery.size > 0) {
      const isQuery = query.size > 0 && (delivery.size === 0 || this.#queries < queriesInARow);
      this.#queries = isQuery && delivery.size > 0 ? this.#queries + 1 : 0;
      const queue = isQuery ? query : delivery;
      for (const grant of queue) {
        queue.delete(grant);
        grant();
        break;
      }
    }
  }
}
