import { isAccountKnown } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';

const secondsOfDay = 86_400;

/**
 * Limits the accounts that each other relay makes known here: what is known of an account is stored
 * for good (07 §B11). Asked before a route is verified, so that a refused one leaves nothing.
 */
export class NewAccounts {
  readonly #context: RelayContext;
  readonly #accounts: RateLimiter;

  constructor(context: RelayContext) {
    const { clock, limits } = context;
    const { dhtNewAccounts: burst } = limits;
    this.#context = context;
    this.#accounts = new RateLimiter({
      ...{ rate: burst / secondsOfDay, burst, clock },
      keys: limits.federationRegistryRelays,
    });
  }

  /** Returns whether a route of the account may come from the relay: also if it is known already. */
  async admit(relayId: string, account: string): Promise<boolean> {
    if (await this.#context.storage.read((tx) => isAccountKnown(tx, account))) return true;
    return this.#accounts.take(relayId) === 0;
  }
}
