import type { RelayContext } from '../context.ts';
import type { Session } from '../sessions/session.ts';
import { type RateLimiter, tooManyCalls } from './rate-limiter.ts';

export interface TokenLookupsParts {
  readonly context: Pick<RelayContext, 'limits' | 'sessions'>;
  /** Allowances of addresses for calls. */
  readonly addresses: RateLimiter;
}

/** A token, as a request carries it. */
export interface CarriedToken {
  readonly token: string;
  readonly origin: string;
  readonly address: string;
}

/**
 * Finds the sessions of tokens. A look-up of a token that is good for no session costs its address
 * one call. A good one costs the address nothing, and is found even if a neighbour has used up the
 * allowance of the address: then a few of its look-ups at once are made all the same.
 */
export class TokenLookups {
  readonly #parts: TokenLookupsParts;
  /** Look-ups under way of addresses without an allowance. */
  readonly #underway = new Map<string, number>();

  constructor(parts: TokenLookupsParts) {
    this.#parts = parts;
  }

  /**
   * Finds the session of a token; `undefined` if the token is good for none.
   * @throws ProtocolError `rate_limited` if the address has no allowance and the token is good for none
   */
  async find({ token, origin, address }: CarriedToken): Promise<Session | undefined> {
    const { context, addresses } = this.#parts;
    const { sessions } = context;
    // A known token was good a moment ago, so a guess is never one.
    if (sessions.isKnown(token)) {
      const session = await sessions.find(token, origin);
      if (session === undefined) throwIfLimited(addresses.take(address));
      return session;
    }
    const wait = addresses.take(address);
    if (wait === 0) {
      const session = await sessions.find(token, origin);
      if (session !== undefined) addresses.giveBack(address);
      return session;
    }
    using _lookup = this.#begin(address, wait);
    const session = await sessions.find(token, origin);
    if (session === undefined) throw tooManyCalls(wait);
    return session;
  }

  #begin(address: string, wait: number): Disposable {
    const underway = this.#underway.get(address) ?? 0;
    if (underway >= this.#parts.context.limits.tokenLookups) throw tooManyCalls(wait);
    this.#underway.set(address, underway + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#underway.get(address) ?? 1) - 1;
        if (left === 0) this.#underway.delete(address);
        else this.#underway.set(address, left);
      },
    };
  }
}

function throwIfLimited(wait: number): void {
  if (wait > 0) throw tooManyCalls(wait);
}
