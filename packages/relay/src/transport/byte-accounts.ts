import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import { RateLimiter, ratesOf } from '../dispatch/rate-limiter.ts';
import { ByteLedger, type ByteOwner } from './byte-ledger.ts';
import { ReadTurns } from './read-turns.ts';

/** Seconds after which a debt is looked at again, at the most. */
const longestWait = 30;

/**
 * The one place that counts the bytes of clients (02 §18): how many are read in a second, how many of
 * unanswered requests are in memory, and how many wait for peers that have not read them.
 */
export class ByteAccounts {
  /** Bytes of requests that arrived and are not answered: unfinished messages and bodies too. */
  readonly received: ByteLedger;
  /** Bytes of answers and notifications that a peer has not taken. */
  readonly waiting: ByteLedger;
  /** Turns in which large bodies are read. */
  readonly turns = new ReadTurns();
  readonly #clock: RelayContext['clock'];
  readonly #rates: Readonly<Record<ByteOwner['kind'], RateLimiter>>;

  constructor({ limits, clock }: Pick<RelayContext, 'limits' | 'clock'>) {
    this.#clock = clock;
    this.received = new ByteLedger({
      ofAddress: limits.receivedBytesPerAddress,
      ofAccount: limits.receivedBytesPerAccount,
      ofStrangers: limits.receivedBytesOfStrangers,
      total: limits.receivedBytes,
      evict: 'grown',
    });
    this.waiting = new ByteLedger({
      ofAddress: limits.waitingBytesPerAddress,
      ofAccount: limits.waitingBytesPerAccount,
      ofStrangers: limits.waitingBytesOfStrangers,
      total: limits.waitingBytes,
      evict: 'largest',
    });
    this.#rates = {
      address: new RateLimiter(
        ratesOf({ limits, clock }, { rate: 'addressBytes', burst: 'addressBytesBurst' }),
      ),
      account: new RateLimiter(
        ratesOf({ limits, clock }, { rate: 'accountBytes', burst: 'accountBytesBurst' }),
      ),
    };
  }

  /**
   * Charges bytes that were read.
   * @returns 0, or the whole seconds until the owner may send again
   */
  charge({ kind, id }: ByteOwner, bytes: number): number {
    return this.#rates[kind].charge(id, bytes);
  }

  /**
   * Calls `goOn` when an owner in debt may send again, in a turn of the owner: all its connections wait
   * for that moment, and what the first of them read may be all that it may send.
   *
   * @param owner returns the owner of that moment
   * @returns ends the wait
   */
  waitForDebt(owner: () => ByteOwner, seconds: number, goOn: () => void): Disposable {
    let isOver = false;
    let timer: Disposable | undefined;
    const wait = (seconds: number) => {
      timer = this.#clock.after(Math.min(seconds, longestWait) * 1_000, () => void look());
    };
    const look = async () => {
      await this.turns.take(payerKey(owner()));
      if (isOver) return;
      const left = this.charge(owner(), 0);
      if (left > 0) wait(left);
      else goOn();
    };
    wait(seconds);
    return {
      [Symbol.dispose]: () => {
        isOver = true;
        timer?.[Symbol.dispose]();
      },
    };
  }
}

/** Returns the error for requests that would hold too many bytes. */
export function tooManyBytes({ limits }: Pick<RelayContext, 'limits'>): ProtocolError {
  const data = { retry_after: Math.ceil(limits.unfinishedMessageTimeout / 1_000) };
  return new ProtocolError('rate_limited', 'too many unanswered bytes', { data });
}
