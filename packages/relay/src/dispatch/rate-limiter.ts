import { ProtocolError } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { Clock, RelayContext } from '../context.ts';

/** Rate and burst may be getters: they are read at each use. */
export interface RateOptions {
  /** Calls in a second, sustained. */
  readonly rate: number;
  /** Calls at once. */
  readonly burst: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Keys stored; one that was not used for long is evicted and starts afresh. */
  readonly keys: number;
}

interface Bucket {
  tokens: number;
  /** When `tokens` was computed, monotonic milliseconds. */
  at: number;
}

/**
 * Returns the options of a limiter whose rate and burst are limits, as they are when they are used.
 *
 * @example
 * new RateLimiter(ratesOf({ clock, limits }, { rate: 'accountRate', burst: 'accountBurst' }));
 */
export function ratesOf(
  { clock, limits }: Pick<RelayContext, 'clock' | 'limits'>,
  names: Readonly<Record<'rate' | 'burst', keyof RelayContext['limits']>>,
): RateOptions {
  return {
    clock,
    keys: limits.rememberedCallers,
    get rate() {
      return limits[names.rate];
    },
    get burst() {
      return limits[names.burst];
    },
  };
}

/**
 * One token bucket per key, in bounded memory. A token is a call, a unit or a byte. What is taken may be
 * refused; what is charged was used already.
 */
export class RateLimiter {
  readonly #options: RateOptions;
  readonly #buckets: BoundedMap<string, Bucket>;

  constructor(options: RateOptions) {
    this.#options = options;
    this.#buckets = new BoundedMap(options.keys);
  }

  /**
   * Takes a token of a key, or another price of at most one token; a refusal costs nothing.
   * @returns 0, or the whole seconds to wait
   */
  take(key: string, price = 1): number {
    const bucket = this.#bucket(key);
    if (bucket.tokens < price) return this.#wait(bucket);
    bucket.tokens -= price;
    return 0;
  }

  /**
   * Takes a price that may be above what is left: a key with a token, or with a smaller price, goes
   * into debt, of at most one burst; any other is refused, which costs one token.
   *
   * @returns 0, or the whole seconds to wait
   */
  takeOnCredit(key: string, price: number): number {
    const bucket = this.#bucket(key);
    const isRefused = bucket.tokens < Math.min(1, price);
    const tokens = bucket.tokens - (isRefused ? 1 : price);
    bucket.tokens = Math.max(-this.#options.burst, tokens);
    return isRefused ? this.#wait(bucket) : 0;
  }

  /** Whether a key owes about as much as it can: charges hardly change that. */
  isOverdrawn(key: string): boolean {
    return this.#bucket(key).tokens <= -0.9 * this.#options.burst;
  }

  /**
   * Charges tokens that were used already, refused or not; a debt is at most one burst.
   * @returns 0, or the whole seconds until the key is out of debt
   */
  charge(key: string, tokens: number): number {
    const bucket = this.#bucket(key);
    bucket.tokens = Math.max(-this.#options.burst, bucket.tokens - tokens);
    return bucket.tokens < 1 ? this.#wait(bucket) : 0;
  }

  /** Refunds a {@link take} for a call that is charged to another key. */
  refund(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket !== undefined) bucket.tokens += 1;
  }

  #bucket(key: string): Bucket {
    const { rate, burst, clock } = this.#options;
    const now = clock.monotonic();
    const known = this.#buckets.get(key);
    const bucket = known ?? { tokens: burst, at: now };
    if (known === undefined) this.#buckets.set(key, bucket);
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1_000) * rate);
    bucket.at = now;
    return bucket;
  }

  #wait({ tokens }: Bucket): number {
    return Math.max(1, Math.ceil((1 - tokens) / this.#options.rate));
  }
}

/**
 * Takes a token of a key, or another price of at most one token.
 * @throws ProtocolError `rate_limited` with the seconds to wait
 */
export function takeFrom(limiter: RateLimiter, key: string, price?: number): void {
  const wait = limiter.take(key, price);
  if (wait > 0) throw tooManyCalls(wait);
}

/** Returns the error of a call above its rate. */
export function tooManyCalls(wait: number): ProtocolError {
  return new ProtocolError('rate_limited', 'too many calls', { data: { retry_after: wait } });
}
