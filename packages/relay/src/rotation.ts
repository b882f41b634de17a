import { Queue } from './queue.ts';

/** Items of newcomers that are served in a row while other owners wait. */
const newcomersInRow = 8;

/** An owner in the present round. */
interface Owner<T> {
  readonly name: string;
  readonly items: Queue<T>;
  /** Items of its share of this round that it has had, or that count as such. */
  early: number;
  /** Items that it has had in this round. */
  had: number;
  /** Whether its next item is served before the turns of others. */
  isNewcomer: boolean;
}

/**
 * What waits, in rotation of its owners: in each round, an owner has one turn of a few items. A
 * newcomer, which had nothing waiting, has its item served before the turns of the others: an owner
 * that waits for each answer hardly notices those with many items. It is a newcomer for as many items
 * of a round as a turn has, and those in a row are few, so each owner has its turns.
 */
export class Rotation<T> {
  /** Items that an owner may have in one turn. */
  readonly #itemsOfTurn: number;
  /** The owners of this round; each stays until a turn in which it has nothing. */
  readonly #round = new Map<string, Owner<T>>();
  readonly #newcomers = new Queue<Owner<T>>();
  /** In the order of their turns. */
  readonly #owners = new Queue<Owner<T>>();
  /** Whose turn it is, and the items left of it. */
  #current: Owner<T> | undefined;
  #left = 0;
  /** Whose item was taken last: what it adds before the next take follows that item. */
  #last: Owner<T> | undefined;
  #newcomersServed = 0;
  #size = 0;
  #turns = 0;

  constructor(itemsOfTurn = 1) {
    this.#itemsOfTurn = itemsOfTurn;
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** Items of all owners. */
  get size(): number {
    return this.#size;
  }

  /** Turns that have begun so far. */
  get turns(): number {
    return this.#turns;
  }

  /** Returns the number of items of one owner. */
  sizeOf(owner: string): number {
    return this.#round.get(owner)?.items.size ?? 0;
  }

  /** Returns the owner of the most items; `undefined` if there are none. */
  largest(): string | undefined {
    let largest: Owner<T> | undefined;
    for (const owner of this.#round.values()) {
      if (owner.items.size > (largest?.items.size ?? 0)) largest = owner;
    }
    return largest?.name;
  }

  /** Adds an item after the others of its owner. */
  add(name: string, item: T): void {
    let owner = this.#round.get(name);
    if (owner === undefined) {
      owner = { name, items: new Queue(), early: 0, had: 0, isNewcomer: false };
      this.#round.set(name, owner);
    }
    const mayBeEarly = owner !== this.#last && owner.early < this.#itemsOfTurn;
    if (owner.items.size === 0 && mayBeEarly && !owner.isNewcomer) {
      owner.isNewcomer = true;
      this.#newcomers.push(owner);
    }
    owner.items.push(item);
    this.#size += 1;
  }

  /** Takes the next item. */
  take(): T | undefined {
    if (this.#size === 0) return undefined;
    this.#last = this.#next();
    if (this.#last !== undefined) this.#last.had += 1;
    const item = this.#last?.items.shift();
    this.#size -= 1;
    if (this.#size === 0) this.#endRound();
    return item;
  }

  /** Takes an owner's last item out of turn. */
  takeLast(name: string): T | undefined {
    const items = this.#round.get(name)?.items;
    if (items === undefined || items.size === 0) return undefined;
    const item = items.pop();
    this.#size -= 1;
    if (this.#size === 0) this.#endRound();
    return item;
  }

  /** Counts the item that was taken last as all that its owner may have in one turn. */
  countTurn(): void {
    const last = this.#last;
    if (last === undefined) return;
    if (last === this.#current) {
      this.#left = 0;
      this.#endTurn();
    } else last.early += this.#itemsOfTurn - 1;
  }

  /** Ends the turn under way, if there is one: its owner goes on in the next round. */
  endTurn(): void {
    this.#endTurn();
  }

  /** Gives an owner back so many items of its share: one that counted as its turn was less work. */
  refund(name: string, items: number): void {
    const owner = this.#round.get(name);
    if (owner !== undefined) owner.early = Math.max(owner.had, owner.early - items);
  }

  /** What is added from now on follows no item, not even that of its owner. */
  forgetLast(): void {
    this.#last = undefined;
  }

  #endTurn(): void {
    const owner = this.#current;
    this.#current = undefined;
    if (owner === undefined) return;
    // With nothing left it may be a newcomer again, for the rest of its share.
    if (owner.items.size === 0) owner.early = this.#itemsOfTurn - this.#left;
    this.#owners.push(owner);
  }

  /** Returns the owner of the next item. */
  #next(): Owner<T> | undefined {
    const early = this.#newcomersServed < newcomersInRow ? this.#newcomer() : undefined;
    if (early !== undefined) return early;
    if (this.#current === undefined || this.#current.items.size === 0) this.#beginTurn();
    const owner = this.#current;
    if (owner === undefined) return this.#newcomer();
    this.#left -= 1;
    if (this.#left === 0) this.#endTurn();
    return owner;
  }

  /** Begins the turn of the next owner that has items, if there is one that is no newcomer. */
  #beginTurn(): void {
    this.#endTurn();
    this.#newcomersServed = 0;
    this.#left = this.#itemsOfTurn;
    for (;;) {
      const owner = this.#owners.shift();
      this.#current = owner;
      if (owner === undefined) return;
      if (owner.items.size > 0) {
        this.#turns += 1;
        owner.isNewcomer = false;
        owner.early = this.#itemsOfTurn;
        owner.had = 0;
        return;
      }
      this.#round.delete(owner.name);
    }
  }

  #newcomer(): Owner<T> | undefined {
    for (;;) {
      const owner = this.#newcomers.shift();
      if (owner === undefined) return undefined;
      // Its turn may have come meanwhile.
      if (!owner.isNewcomer) continue;
      owner.isNewcomer = false;
      if (owner.items.size === 0) {
        // Its items were taken out of turn. Without a turn in this round it is forgotten.
        if (owner.early === 0) this.#round.delete(owner.name);
        continue;
      }
      if (owner.early === 0) this.#owners.push(owner);
      owner.early += 1;
      this.#newcomersServed += 1;
      return owner;
    }
  }

  /** Forgets all owners. */
  #endRound(): void {
    this.#round.clear();
    for (const queue of [this.#owners, this.#newcomers]) while (queue.shift() !== undefined);
    this.#current = undefined;
    this.#last = undefined;
    this.#newcomersServed = 0;
  }
}
