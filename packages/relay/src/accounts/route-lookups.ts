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

/** A lookup that has not ended. */
interface Lookup {
  readonly asker: string | undefined;
  readonly result: Promise<RouteLookup>;
}

/**
 * Limits the questions to the route directory: one per account at a time, some at once in all, for
 * each asker, and for all askers without a session, some per second for each asker, and none while
 * the answer to an earlier one still serves (07 §B12).
 * Held in the memory of one process; what a lookup found is stored for all.
 */
export class LimitedRouteLookups implements RouteLookups {
  readonly startedAt: number;
  readonly #clock: Clock;
  readonly #limits: RelayLimits;
  readonly #underWay = new Map<string, Lookup>();
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
      keys: limits.rememberedCallers,
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
  ): Promise<RouteLookup> {
    const { asker, lookUp } = options;
    const joined = this.#underWay.get(account);
    if (joined !== undefined) return await joined.result;
    if (!this.#hasRoom(asker)) {
      const data = { retry_after: 1 };
      throw new ProtocolError('rate_limited', 'too many accounts are looked up', { data });
    }
    if (asker !== undefined) takeFrom(this.#askers, asker);
    const result = this.#remember(account, lookUp);
    this.#underWay.set(account, { asker, result });
    try {
      return await result;
    } finally {
      this.#underWay.delete(account);
    }
  }

  /**
   * Some places are left for sessions and jobs: others would take all while a relay is slow. The last
   * quarter of places, of all and of those without a session, is for askers with nothing under way.
   */
  #hasRoom(asker: string | undefined): boolean {
    const { routeLookups, routeLookupsEach, routeLookupsWithoutSession } = this.#limits;
    if (this.#underWay.size >= routeLookups) return false;
    if (asker === undefined) return true;
    const askers = [...this.#underWay.values()].map((lookup) => lookup.asker);
    const own = askers.filter((other) => other === asker).length;
    if (own >= routeLookupsEach) return false;
    const most = (places: number) => (own === 0 ? places : places - Math.floor(places / 4));
    if (askers.length >= most(routeLookups)) return false;
    const others = askers.filter((other) => other !== undefined && !hasSession(other));
    return hasSession(asker) || others.length < most(routeLookupsWithoutSession);
  }

  async #remember(account: string, lookUp: () => Promise<RouteLookup>): Promise<RouteLookup> {
    const result = await lookUp();
    this.#past.set(account, { at: this.#clock.monotonic(), hasFound: result.hasFound });
    return result;
  }
}

/** Tells whether an asker is an account with a device session, not an address or a relay. */
function hasSession(asker: string): boolean {
  return asker.startsWith('account ');
}
