import { ProtocolError } from '@posthouse/protocol';
import type { Clock, RelayQueries } from '../context.ts';
import type { RelayLimits } from '../limits.ts';
import { RateLimiter, takeFrom } from './rate-limiter.ts';

/** Seconds after which a caller may ask again if too many queries are under way. */
const retryAfter = 1;

const secondsOfDay = 86_400;

/**
 * The limits of {@link RelayQueries}, in the memory of one process. One account cannot make this
 * relay flood another, and a relay that does not answer leaves room for queries to the others.
 */
export class RelayQueryLimiter implements RelayQueries {
  readonly #limits: RelayLimits;
  readonly #rate: RateLimiter;
  readonly #newAccounts: RateLimiter;
  /** Queries under way, by account and by relay. */
  readonly #running = new Map<string, number>();
  #total = 0;

  constructor({ limits, clock }: { readonly limits: RelayLimits; readonly clock: Clock }) {
    const { relayQueryRate: rate, relayQueryBurst: burst, relayQueryNewAccounts } = limits;
    this.#limits = limits;
    this.#rate = new RateLimiter({ rate, burst, clock, keys: limits.rememberedCallers });
    this.#newAccounts = new RateLimiter({
      rate: relayQueryNewAccounts / secondsOfDay,
      burst: relayQueryNewAccounts,
      clock,
      keys: limits.rememberedCallers,
    });
  }

  begin(account: string): Disposable {
    takeFrom(this.#rate, account);
    if (this.#total >= this.#limits.relayQueries) throw tooMany();
    const place = this.#enter(`account:${account}`, this.#limits.relayQueriesOfAccount);
    this.#total += 1;
    return once(() => {
      this.#total -= 1;
      place[Symbol.dispose]();
    });
  }

  beginRequest(relayId: string): Disposable {
    return this.#enter(`relay:${relayId}`, this.#limits.relayQueriesToRelay);
  }

  takeNewAccount(account: string): void {
    takeFrom(this.#newAccounts, account);
  }

  #enter(key: string, limit: number): Disposable {
    const running = this.#running.get(key) ?? 0;
    if (running >= limit) throw tooMany();
    this.#running.set(key, running + 1);
    return once(() => {
      const left = (this.#running.get(key) ?? 1) - 1;
      if (left === 0) this.#running.delete(key);
      else this.#running.set(key, left);
    });
  }
}

function tooMany(): ProtocolError {
  return new ProtocolError('rate_limited', 'too many queries to other relays are under way', {
    data: { retry_after: retryAfter },
  });
}

/** Runs the work at the first disposal only. */
function once(work: () => void): Disposable {
  let isDone = false;
  return {
    [Symbol.dispose]: () => {
      if (isDone) return;
      isDone = true;
      work();
    },
  };
}
