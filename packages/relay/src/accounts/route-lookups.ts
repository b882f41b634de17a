import { ProtocolError } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { Clock, Home, RouteLookup, RouteLookups } from '../context.ts';
import { RateLimiter, takeFrom } from '../dispatch/rate-limiter.ts';
import type { RelayLimits } from '../limits.ts';

/** What a finished lookup leaves in memory; the routes that it found are in storage. */
interface PastLookup {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly hasFound: boolean;
}

/**
 * Limits the questions to the route directory: one per account at a time, some at once in all, some
 * per second for each asker, and none while the answer to an earlier one still serves (07 §B12).
 * Held in the memory of one process; what a lookup found is stored for all.
 */
export class LimitedRouteLookups implements RouteLookups {
  readonly startedAt: number;
  readonly #clock: Clock;
  readonly #limits: RelayLimits;
  readonly #underWay = new Map<string, Promise<Home>>();
  readonly #past: BoundedMap<string, PastLookup>;
  readonly #askers: RateLimiter;

  constructor(parts: { readonly clock: Clock; readonly limits: RelayLimits }) {
    const { clock, limits } = parts;
    this.startedAt = clock.now();
    this.#clock = clock;
    this.#limits = limits;
    this.#past = new BoundedMap(limits.rememberedRouteLookups);
    this.#askers = new RateLimiter({
      clock,
      rate: limits.routeLookupRate,
      burst: limits.routeLookupBurst,
    });
  }

  isFresh(account: string, { kind }: Home): boolean {
    const past = this.#past.get(account);
    if (past === undefined) return false;
    const { routeCache, routeNotFound } = this.#limits;
    const lifetime = kind === 'elsewhere' && past.hasFound ? routeCache : routeNotFound;
    return this.#clock.monotonic() - past.at < lifetime * 1_000;
  }

  async run(
    account: string,
    options: {
      readonly asker: string | undefined;
      readonly lookUp: () => Promise<RouteLookup>;
    },
  ): Promise<Home> {
    const { asker, lookUp } = options;
    const joined = this.#underWay.get(account);
    if (joined !== undefined) return await joined;
    if (this.#underWay.size >= this.#limits.routeLookups) {
      const data = { retry_after: 1 };
      throw new ProtocolError('rate_limited', 'too many accounts are looked up', { data });
    }
    if (asker !== undefined) takeFrom(this.#askers, asker);
    const running = this.#remember(account, lookUp);
    this.#underWay.set(account, running);
    try {
      return await running;
    } finally {
      this.#underWay.delete(account);
    }
  }

  async #remember(account: string, lookUp: () => Promise<RouteLookup>): Promise<Home> {
    const { home, hasFound } = await lookUp();
    this.#past.set(account, { at: this.#clock.monotonic(), hasFound });
    return home;
  }
}
