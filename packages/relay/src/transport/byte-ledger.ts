/** Whose bytes are counted: an account with a session, or the address of a stranger. */
export interface ByteOwner {
  readonly kind: 'account' | 'address';
  readonly id: string;
}

export interface ByteLedgerOptions {
  readonly ofAddress: number;
  readonly ofAccount: number;
  /** Bytes of all addresses without a session. */
  readonly ofStrangers: number;
  readonly total: number;
  /**
   * What ends if an owner holds too much: the hold that grew, or the owner's largest one. If the
   * process holds too much, it is always the largest hold of the owner with the most bytes.
   */
  readonly evict: 'grown' | 'largest';
}

interface OwnerBytes {
  readonly owner: ByteOwner;
  readonly holds: Set<ByteHold>;
  bytes: number;
  /** Of them, those of holds that yield. */
  yielding: number;
}

/** Counts one kind of bytes in memory, by owner and for the process, and keeps them below limits. */
export class ByteLedger {
  readonly #options: ByteLedgerOptions;
  readonly #owners = {
    account: new Map<string, OwnerBytes>(),
    address: new Map<string, OwnerBytes>(),
  };
  #strangers = 0;
  #total = 0;

  constructor(options: ByteLedgerOptions) {
    this.#options = options;
  }

  /** Bytes of the process. */
  get total(): number {
    return this.#total;
  }

  /** Returns whether an owner can hold so many bytes more. */
  hasRoom(owner: ByteOwner, bytes: number): boolean {
    const held = this.#owners[owner.kind].get(owner.id);
    return (held?.bytes ?? 0) - (held?.yielding ?? 0) + bytes <= this.#most(owner);
  }

  /**
   * Opens a hold of no bytes.
   *
   * @param evicted called when the hold ends because of other holds; frees what it stands for
   */
  open(owner: ByteOwner, evicted: () => void): ByteHold {
    return new ByteHold(this, owner, evicted);
  }

  /** Opens a hold that yields: if its owner holds too much, the largest of these ends before any other. */
  openYielding(owner: ByteOwner, evicted: () => void): ByteHold {
    return new ByteHold(this, owner, evicted, true);
  }

  /** @internal Adds bytes to a hold; returns whether the hold is still open. */
  grow(hold: ByteHold, bytes: number): boolean {
    this.#count(hold, bytes);
    for (;;) {
      const victim = this.#victim(hold);
      if (victim === undefined) return true;
      if (victim === hold) {
        hold[Symbol.dispose]();
        return false;
      }
      victim.evict();
    }
  }

  /** @internal Counts bytes more, or fewer, for the owner of a hold. */
  #count(hold: ByteHold, bytes: number): void {
    const { owner } = hold;
    const owners = this.#owners[owner.kind];
    const known = owners.get(owner.id);
    const held = known ?? { owner, holds: new Set(), bytes: 0, yielding: 0 };
    hold.bytes += bytes;
    held.bytes += bytes;
    if (hold.yields) held.yielding += bytes;
    this.#total += bytes;
    if (owner.kind === 'address') this.#strangers += bytes;
    if (hold.bytes > 0) held.holds.add(hold);
    else held.holds.delete(hold);
    if (held.holds.size === 0) owners.delete(owner.id);
    else if (known === undefined) owners.set(owner.id, held);
  }

  /** @internal Takes bytes off a hold. */
  shrink(hold: ByteHold, bytes: number): void {
    this.#count(hold, -bytes);
  }

  /** Finds the hold to end after one grew, if a limit is exceeded. */
  #victim(grown: ByteHold): ByteHold | undefined {
    const { ofStrangers, total, evict } = this.#options;
    const held = this.#owners[grown.owner.kind].get(grown.owner.id);
    if (held !== undefined && held.bytes > this.#most(grown.owner)) {
      if (held.yielding > 0) return largestOf(held, ({ yields }) => yields);
      return evict === 'grown' ? grown : largestOf(held);
    }
    const strangersOnly = this.#strangers > ofStrangers;
    if (!strangersOnly && this.#total <= total) return undefined;
    const { account, address } = this.#owners;
    let most: OwnerBytes | undefined;
    for (const owners of strangersOnly ? [address] : [address, account]) {
      for (const one of owners.values()) {
        if (most === undefined || one.bytes > most.bytes) most = one;
      }
    }
    return most && largestOf(most);
  }

  #most({ kind }: ByteOwner): number {
    return kind === 'address' ? this.#options.ofAddress : this.#options.ofAccount;
  }
}

/** Bytes that one connection or request has in memory. */
export class ByteHold implements Disposable {
  /** Bytes held; only the ledger sets it. */
  bytes = 0;
  #owner: ByteOwner;
  readonly #ledger: ByteLedger;
  readonly #evicted: () => void;
  /** Whether it ends before others of its owner. */
  readonly yields: boolean;

  constructor(ledger: ByteLedger, owner: ByteOwner, evicted: () => void, yields = false) {
    this.yields = yields;
    this.#ledger = ledger;
    this.#owner = owner;
    this.#evicted = evicted;
  }

  get owner(): ByteOwner {
    return this.#owner;
  }

  /** Adds bytes; returns false if that is too much: the hold is empty then. */
  add(bytes: number): boolean {
    return this.#ledger.grow(this, bytes);
  }

  /** Gives back bytes, at most those that are held. */
  release(bytes: number): void {
    this.#ledger.shrink(this, Math.min(bytes, this.bytes));
  }

  /** Counts the bytes for another owner from now on. */
  moveTo(owner: ByteOwner): boolean {
    const { bytes } = this;
    this.release(bytes);
    this.#owner = owner;
    return this.add(bytes);
  }

  /** Empties the hold and frees what it stands for. */
  evict(): void {
    this[Symbol.dispose]();
    this.#evicted();
  }

  /** Empties the hold. */
  [Symbol.dispose](): void {
    this.release(this.bytes);
  }
}

function largestOf(
  { holds }: OwnerBytes,
  isMeant: (hold: ByteHold) => boolean = () => true,
): ByteHold | undefined {
  let largest: ByteHold | undefined;
  for (const hold of holds) {
    if (!isMeant(hold)) continue;
    if (largest === undefined || hold.bytes > largest.bytes) largest = hold;
  }
  return largest;
}
