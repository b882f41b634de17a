import { BoundedMap } from '../bounded-map.ts';
import type { AccountFacts, KnownAccounts } from '../known-accounts.ts';
import type { RelayLimits } from '../limits.ts';
import type { AggregateKey, Storage } from '../storage/types.ts';
import { readAccountFacts } from './facts-store.ts';

/** Bytes of the facts of an account, and of a device, next to the texts that they contain. */
const accountBytes = 512;
const deviceBytes = 512;

/**
 * Facts of accounts in memory: read once, and forgotten when a write of the account begins. While
 * such a write runs, none are remembered: what a read finds then may be what the write changes.
 *
 * Only this process's writes are told to it. On a database of several processes, a statement that
 * relies on facts compares their revisions with what is stored.
 */
export class AccountFactsCache implements KnownAccounts {
  readonly #storage: Storage;
  readonly #facts: BoundedMap<string, AccountFacts>;
  /** Reads under way, by account; without an entry, what a read finds is not remembered. */
  readonly #reading = new Map<string, Promise<AccountFacts | undefined>>();
  /** Number of writes under way, by aggregate. */
  readonly #changing = new Map<AggregateKey, number>();

  constructor({
    storage,
    limits,
  }: {
    readonly storage: Storage;
    readonly limits: Pick<RelayLimits, 'accountFactsBytes'>;
  }) {
    this.#storage = storage;
    this.#facts = new BoundedMap(limits.accountFactsBytes, { sizeOf: bytesOf });
    storage.watch({
      begins: (aggregates) => {
        for (const aggregate of aggregates) this.#begin(aggregate);
      },
      ended: (aggregates) => {
        for (const aggregate of aggregates) this.#end(aggregate);
      },
      changed: () => {
        this.#facts.clear();
        this.#reading.clear();
      },
    });
  }

  find(account: string): AccountFacts | Promise<AccountFacts | undefined> {
    return this.#facts.get(account) ?? this.#read(account);
  }

  isCurrent(facts: AccountFacts): boolean {
    return this.#facts.peek(facts.account) === facts;
  }

  /** Reads facts, once for all that ask meanwhile. */
  async #read(account: string): Promise<AccountFacts | undefined> {
    if (this.#changing.has(`account:${account}`)) return undefined;
    const underWay = this.#reading.get(account);
    if (underWay !== undefined) return await underWay;
    const reading = this.#storage.read((tx) => readAccountFacts(tx, account));
    this.#reading.set(account, reading);
    try {
      const facts = await reading;
      if (facts !== undefined && this.#reading.get(account) === reading) {
        this.#facts.set(account, facts);
      }
      return facts;
    } finally {
      if (this.#reading.get(account) === reading) this.#reading.delete(account);
    }
  }

  #begin(aggregate: AggregateKey): void {
    const account = accountOf(aggregate);
    if (account === undefined) return;
    this.#changing.set(aggregate, (this.#changing.get(aggregate) ?? 0) + 1);
    this.#facts.delete(account);
    this.#reading.delete(account);
  }

  #end(aggregate: AggregateKey): void {
    const left = (this.#changing.get(aggregate) ?? 0) - 1;
    if (left > 0) this.#changing.set(aggregate, left);
    else this.#changing.delete(aggregate);
  }
}

function accountOf(aggregate: AggregateKey): string | undefined {
  return aggregate.startsWith('account:') ? aggregate.slice('account:'.length) : undefined;
}

function bytesOf({ devices }: AccountFacts): number {
  let bytes = accountBytes;
  for (const { certificate } of devices.values()) bytes += deviceBytes + memoryOf(certificate);
  return bytes;
}

/** One wide character makes each take two bytes. */
function memoryOf(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;
}
