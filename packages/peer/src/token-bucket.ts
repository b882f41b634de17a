import type { PeerClock } from './clock.ts';

/** Allows a number of things at once, and so many in a second after that. */
export class TokenBucket {
  readonly #rate: number;
  readonly #burst: number;
  readonly #clock: PeerClock;
  #tokens: number;
  #at: number;

  /** @param options `rate` in a second, sustained; `burst` at once */
  constructor({ rate, burst, clock }: { rate: number; burst: number; clock: PeerClock }) {
    this.#rate = rate;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  /** Takes tokens; returns whether there were enough. */
  take(count = 1): boolean {
    const now = this.#clock.monotonic();
    const fresh = ((now - this.#at) / 1_000) * this.#rate;
    this.#tokens = Math.min(this.#burst, this.#tokens + fresh);
    this.#at = now;
    if (this.#tokens < count) return false;
    this.#tokens -= count;
    return true;
  }
}
