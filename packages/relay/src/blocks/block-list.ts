import type { BlockChange, Blocks, Clock } from '../context.ts';
import { TurnTime } from '../event-loop.ts';
import type { Storage } from '../storage/types.ts';
import { readRange } from './address-range.ts';
import { AddressSet } from './address-set.ts';
import { type AfterBlock, type Block, readBlocks, readChanges } from './block-store.ts';

/** Blocks that are read at once. */
const batchSize = 250;

/** By ID: when its block ends, Unix seconds, or infinity. */
type Ends = Map<string, number>;

/** The blocks of accounts, addresses and channels in the memory of this process. */
export class BlockList implements Blocks {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #storage: Pick<Storage, 'read'>;
  readonly #listeners = new Set<(change: BlockChange) => void>();
  #accounts: Ends = new Map();
  #channels: Ends = new Map();
  #addresses = new AddressSet();
  /** The number of the change that is in memory. */
  #known = -1;

  constructor(parts: {
    readonly clock: Pick<Clock, 'now'>;
    readonly storage: Pick<Storage, 'read'>;
  }) {
    this.#clock = parts.clock;
    this.#storage = parts.storage;
  }

  hasAccount(account: string): boolean {
    return this.#isInForce(this.#accounts.get(account));
  }

  hasChannel(channelId: string): boolean {
    return this.#isInForce(this.#channels.get(channelId));
  }

  get hasAddresses(): boolean {
    return !this.#addresses.isEmpty;
  }

  hasAddress(address: string): boolean {
    return this.#addresses.has(address, this.#clock.now());
  }

  onChange(listener: (change: BlockChange) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async refresh(): Promise<void> {
    const number = await this.#storage.read(readChanges);
    if (number === this.#known) return;
    const accounts: Ends = new Map();
    const channels: Ends = new Map();
    const addresses = new AddressSet();
    const turn = new TurnTime();
    for (let after: AfterBlock | undefined, isLast = false; !isLast; ) {
      const page = { after, limit: batchSize };
      const blocks = await this.#storage.read((tx) => readBlocks(tx, this.#clock.now(), page));
      for (const block of blocks) add(block, { accounts, addresses, channels });
      after = blocks.at(-1);
      isLast = blocks.length < batchSize;
      if (turn.isOver) await turn.next();
    }
    const before = this.#accounts;
    this.#accounts = accounts;
    this.#channels = channels;
    this.#addresses = addresses;
    // The number from before: what changed meanwhile is read again.
    this.#known = number;
    // A block that has ended may still be in memory: who signed in since loses that session now.
    const added = [...accounts.keys()].filter((account) => !this.#isInForce(before.get(account)));
    for (const listener of this.#listeners) listener({ accounts: added });
  }

  #isInForce(endsAt: number | undefined): boolean {
    return endsAt !== undefined && this.#clock.now() < endsAt;
  }
}

function add(
  { kind, id, endsAt = Number.POSITIVE_INFINITY }: Block,
  to: { readonly accounts: Ends; readonly channels: Ends; readonly addresses: AddressSet },
): void {
  if (kind === 'account') to.accounts.set(id, endsAt);
  if (kind === 'channel') to.channels.set(id, endsAt);
  const range = kind === 'address' ? readRange(id) : undefined;
  if (range !== undefined) to.addresses.add(range, endsAt);
}
