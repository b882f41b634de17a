import { rejectOnAbort } from '@posthouse/peer';
import { BoundedMap } from '../../bounded-map.ts';
import type { RelayContext } from '../../context.ts';

/**
 * Spaces this relay's DHT requests to each other relay: one that gets more than it allows resets the
 * streams, and is not asked for a while then. Requests wait in their order.
 */
export class RequestPace {
  readonly #clock: RelayContext['clock'];
  /** Milliseconds between two requests, sustained. */
  readonly #interval: number;
  readonly #burst: number;
  /** Monotonic milliseconds at which the last request was due, by relay ID. */
  readonly #last: BoundedMap<string, number>;

  constructor({ clock, limits }: Pick<RelayContext, 'clock' | 'limits'>) {
    this.#clock = clock;
    this.#interval = 1_000 / limits.dhtAskRate;
    this.#burst = limits.dhtAskBurst;
    this.#last = new BoundedMap(limits.federationRegistryRelays);
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
    return await rejectOnAbort(signal, promise).catch(() => false);
  }
}
