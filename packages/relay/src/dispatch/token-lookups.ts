import type { RelayContext } from '../context.ts';
import type { Session } from '../sessions/session.ts';
import { type RateLimiter, tooManyCalls } from './rate-limiter.ts';

export interface TokenLookupsParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits' | 'sessions'>;
  /** Allowances of addresses for calls. */
  readonly addresses: RateLimiter;
}

/** A token, as a request carries it. */
export interface CarriedToken {
  readonly token: string;
  readonly origin: string;
  readonly address: string;
}

/** Look-ups of one address without an allowance. */
interface OfAddress {
  underWay: number;
  /** Begin the look-ups that wait, in their order: one for each connection at the most. */
  readonly waiting: Set<() => void>;
}

/**
 * Finds the sessions of tokens. A look-up of a token that is good for no session costs its address
 * one call. A good one costs the address nothing, and is found even if a neighbour has used up the
 * allowance of the address: then a few of its look-ups at once are made all the same, and others wait.
 */
export class TokenLookups {
  readonly #parts: TokenLookupsParts;
  /** By address. */
  readonly #unpaid = new Map<string, OfAddress>();

  constructor(parts: TokenLookupsParts) {
    this.#parts = parts;
  }

  /**
   * Finds the session of a token; `undefined` if the token is good for none.
   * @throws ProtocolError `rate_limited` if the address has no allowance and the token is good for
   *   none, or waited too long
   */
  async find(carried: CarriedToken): Promise<Session | undefined> {
    const { context, addresses } = this.#parts;
    const { sessions } = context;
    const { token, origin, address } = carried;
    // A known token was good a moment ago, so a guess is never one.
    if (sessions.isKnown(token)) {
      const session = await sessions.find(token, origin);
      if (session === undefined) throwIfLimited(addresses.take(address));
      return session;
    }
    const wait = addresses.take(address);
    return wait === 0 ? await this.#findPaid(carried) : await this.#findUnpaid(carried, wait);
  }

  async #findPaid({ token, origin, address }: CarriedToken): Promise<Session | undefined> {
    const { context, addresses } = this.#parts;
    let isWrong = false;
    try {
      const session = await context.sessions.find(token, origin);
      isWrong = session === undefined;
      return session;
    } finally {
      // Nor does a look-up that fails cost anything.
      if (!isWrong) addresses.refund(address);
    }
  }

  async #findUnpaid({ token, origin, address }: CarriedToken, wait: number): Promise<Session> {
    await this.#begin(address, wait);
    try {
      const session = await this.#parts.context.sessions.find(token, origin);
      if (session === undefined) throw tooManyCalls(wait);
      return session;
    } finally {
      this.#end(address);
    }
  }

  /** Resolves when the address may begin a look-up. */
  async #begin(address: string, wait: number): Promise<void> {
    const { clock, limits } = this.#parts.context;
    const unpaid = this.#unpaid.get(address) ?? { underWay: 0, waiting: new Set() };
    this.#unpaid.set(address, unpaid);
    if (unpaid.underWay < limits.tokenLookups) {
      unpaid.underWay += 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    unpaid.waiting.add(resolve);
    using _deadline = clock.after(limits.tokenLookupWait, () => {
      unpaid.waiting.delete(resolve);
      reject(tooManyCalls(wait));
    });
    await promise;
  }

  /** Ends a look-up; the next one takes its place. */
  #end(address: string): void {
    const unpaid = this.#unpaid.get(address) as OfAddress;
    const [next] = unpaid.waiting;
    if (next !== undefined) {
      unpaid.waiting.delete(next);
      next();
      return;
    }
    unpaid.underWay -= 1;
    if (unpaid.underWay === 0) this.#unpaid.delete(address);
  }
}

function throwIfLimited(wait: number): void {
  if (wait > 0) throw tooManyCalls(wait);
}
