import { addressKey } from './address-key.ts';
import type { PeerClock } from './clock.ts';
import type { PeerLimits } from './limits.ts';
import { TokenBucket } from './token-bucket.ts';

/** Addresses whose rate is remembered; the oldest are forgotten first. */
const rememberedAddresses = 10_000;

/** Limits of connections that are not admitted yet, in all and of each address. */
export class AddressLimits {
  readonly #limits: PeerLimits;
  readonly #clock: PeerClock;
  readonly #pending = new Map<string, number>();
  readonly #buckets = new Map<string, TokenBucket>();
  #total = 0;

  constructor(limits: PeerLimits, clock: PeerClock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Connections that were entered and not left. */
  get pending(): number {
    return this.#total;
  }

  /** Counts a new connection; returns why it must be refused, or what to call at its end. */
  enter(address: string): string | (() => void) {
    const key = addressKey(address);
    const pending = this.#pending.get(key) ?? 0;
    if (this.#total >= this.#limits.handshakes) return 'too many handshakes under way';
    if (pending >= this.#limits.handshakesPerAddress) {
      return 'too many handshakes under way with this address';
    }
    if (!this.#takeToken(key)) return 'too many connections of this address in a short time';
    this.#total += 1;
    this.#pending.set(key, pending + 1);
    return () => {
      this.#total -= 1;
      const rest = (this.#pending.get(key) ?? 1) - 1;
      if (rest === 0) this.#pending.delete(key);
      else this.#pending.set(key, rest);
    };
  }

  #takeToken(key: string): boolean {
    const { handshakeRate: rate, handshakeBurst: burst } = this.#limits;
    const bucket = this.#buckets.get(key) ?? new TokenBucket({ rate, burst, clock: this.#clock });
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > rememberedAddresses) {
      const [oldest] = this.#buckets.keys();
      this.#buckets.delete(oldest as string);
    }
    return bucket.take();
  }
}
