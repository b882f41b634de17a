import { BoundedMap } from '../bounded-map.ts';
import type { Clock } from '../context.ts';

export interface PaceOptions {
  /** Things in a second, sustained. */
  readonly rate: number;
  /** Things at once. */
  readonly burst: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Keys stored; the least recently used one is evicted and starts afresh. */
  readonly keys: number;
}

/** Says of each key how long its next thing has to wait, to the millisecond; in bounded memory. */
export class Pace {
  readonly #interval: number;
  readonly #ahead: number;
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** When all that was taken would be over at one in each interval, monotonic milliseconds. */
  readonly #over: BoundedMap<string, number>;

  constructor({ rate, burst, clock, keys }: PaceOptions) {
    this.#interval = 1_000 / rate;
    this.#ahead = (burst - 1) * this.#interval;
    this.#clock = clock;
    this.#over = new BoundedMap(keys);
  }

  /** Returns the milliseconds until the next thing of a key may begin. */
  wait(key: string): number {
    const now = this.#clock.monotonic();
    return Math.max(0, (this.#over.get(key) ?? now) - this.#ahead - now);
  }

  /** Counts the next thing of a key, which begins after its wait. */
  take(key: string): void {
    const now = this.#clock.monotonic();
    this.#over.set(key, Math.max(now, this.#over.get(key) ?? now) + this.#interval);
  }

  /** Takes back the count of a thing that does not begin. */
  refund(key: string): void {
    const over = this.#over.get(key);
    if (over !== undefined) this.#over.set(key, over - this.#interval);
  }
}
