import { rejectOnAbort } from '@posthouse/peer';
import { BoundedMap } from '../../bounded-map.ts';
import type { Clock } from '../../context.ts';

/**
 * Spaces this relay's DHT requests to each other relay: one that gets more than it allows resets the
 * streams, and is not asked for a while then. Requests wait in their order.
 */
export class RequestPace {
  readonly #clock: Clock;
  /** Milliseconds between two requests, sustained. */
  readonly #interval: number;
  readonly #burst: number;
  /** Monotonic milliseconds at which the last request was due, by relay ID. */
  readonly #last: BoundedMap<string, number>;

  constructor(options: {
    readonly clock: Clock;
    /** Requests to one relay in a second, sustained. */
    readonly rate: number;
    /** Requests to one relay at once. */
    readonly burst: number;
    /** Relays that are remembered. */
    readonly keys: number;
  }) {
    const { clock, rate, burst, keys } = options;
    this.#clock = clock;
    this.#interval = 1_000 / rate;
    this.#burst = burst;
    this.#last = new BoundedMap(keys);
  }

  /** Waits for a relay's next turn; returns `false` if the signal aborts before. */
  async turn(relayId: string, signal: AbortSignal): Promise<boolean> {
    const now = this.#clock.monotonic();
    const earliest = now - this.#burst * this.#interval;
    const due = Math.max(this.#last.get(relayId) ?? earliest, earliest) + this.#interval;
    this.#last.set(relayId, due);
    if (due <= now) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    using _timer = this.#clock.after(Math.ceil(due - now), () => resolve(true));
    const isTurn = await rejectOnAbort(signal, promise).catch(() => false);
    // The turn is for another request: those that were given up must not delay all later ones.
    if (!isTurn) this.#last.set(relayId, (this.#last.get(relayId) ?? due) - this.#interval);
    return isTurn;
  }
}
