import type { RelayContext } from '../context.ts';
import { RateLimiter, ratesOf, tooManyCalls } from './rate-limiter.ts';

/** Who pays for a call: the account of its session, or the address of a caller without one. */
export interface Payer {
  readonly kind: 'account' | 'address';
  readonly id: string;
}

/** Returns the name of a payer in rotations. */
export function payerKey({ kind, id }: Payer): string {
  return `${kind} ${id}`;
}

/** Milliseconds for which a transport lets a payer wait that is refused and owes all that it can owe. */
export const refusalPause = 1_000;

/** The units that accounts and addresses may use (02 §18), in the memory of one process. */
export class Allowances {
  readonly #limiters: Readonly<Record<Payer['kind'], RateLimiter>>;

  constructor({ clock, limits }: Pick<RelayContext, 'clock' | 'limits'>) {
    const limiter = (rate: keyof RelayContext['limits'], burst: keyof RelayContext['limits']) =>
      new RateLimiter(ratesOf({ clock, limits }, { rate, burst }));
    this.#limiters = {
      account: limiter('accountRate', 'accountBurst'),
      address: limiter('addressRate', 'addressBurst'),
    };
  }

  /** The limiter of addresses, for look-ups that are charged before it is known who pays. */
  get addresses(): RateLimiter {
    return this.#limiters.address;
  }

  /**
   * Takes units before the work. A payer that has one unit may go into debt; one that has none is
   * refused, which costs a unit too.
   *
   * @throws ProtocolError `rate_limited` with the seconds to wait
   */
  take({ kind, id }: Payer, units: number): void {
    const wait = this.#limiters[kind].takeOnCredit(id, units);
    if (wait > 0) throw tooManyCalls(wait);
  }

  /** Charges units of work that was done, or that is no longer refused. */
  charge({ kind, id }: Payer, units: number): void {
    if (units > 0) this.#limiters[kind].charge(id, units);
  }

  /** Whether the payer owes all that it can owe: what it sends now costs it nothing more. */
  isOverdrawn({ kind, id }: Payer): boolean {
    return this.#limiters[kind].isOverdrawn(id);
  }
}
