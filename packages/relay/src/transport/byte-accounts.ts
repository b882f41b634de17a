import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { RateLimiter, ratesOf } from '../dispatch/rate-limiter.ts';
import { StepTurns } from '../step-turns.ts';
import { ByteLedger, type ByteOwner } from './byte-ledger.ts';
import { Debts } from './debts.ts';
import { ReadTurns } from './read-turns.ts';
import { Receivers } from './receivers.ts';

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
  /** Turns in which HTTP is parsed, requests that waited begin, and late refusals are answered. */
  readonly httpTurns = new StepTurns();
  /** Turns in which what did not come in time ends, and connections that their peers end: many may at one moment. */
  readonly dueTurns = new StepTurns();
  /** WebSockets and bodies that receive: those of an owner pause together. */
  readonly receivers = new Receivers();
  /** Connections that receive nothing while their owner owes. */
  readonly debts: Debts;
  readonly #rates: Readonly<Record<ByteOwner['kind'], RateLimiter>>;

  constructor({ limits, clock }: Pick<RelayContext, 'limits' | 'clock'>) {
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
    const left = (owner: ByteOwner) => this.charge(owner, 0);
    this.debts = new Debts({ clock, turns: this.turns, left });
  }

  /**
   * Charges bytes that were read; if the owner owes then, its connections receive nothing more.
   *
   * @returns 0, or the whole seconds until the owner may send again
   */
  charge(owner: ByteOwner, bytes: number): number {
    const wait = this.#rates[owner.kind].charge(owner.id, bytes);
    if (wait > 0) this.receivers.pauseAll(owner, wait);
    return wait;
  }
}

/** Returns the error for requests that would hold too many bytes. */
export function tooManyBytes({ limits }: Pick<RelayContext, 'limits'>): ProtocolError {
  const data = { retry_after: Math.ceil(limits.unfinishedMessageTimeout / 1_000) };
  return new ProtocolError('rate_limited', 'too many unanswered bytes', { data });
}
