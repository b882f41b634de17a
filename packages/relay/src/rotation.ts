import { Queue } from './queue.ts';

/** Newcomers that are served in a row while other owners wait. */
const newcomersInRow = 8;

/**
 * What waits, in rotation of its owners: in each round, an owner has one turn of a few items. A
 * newcomer, which had nothing waiting in this round, has its first item served before the turns of the
 * others: an owner that waits for each answer hardly notices those with many items. It is a newcomer
 * once in a round, and those in a row are few, so no owner waits for more than one turn of each other.
 */
export class Rotation<T> {
  /** Items that an owner may have in one turn. */
  readonly #itemsOfTurn: number;
  /** Items of each owner; an owner of this round stays when it has none. */
  readonly #items = new Map<string, Queue<T>>();
  readonly #newcomers = new Queue<string>();
  /** The others, in the order of their turns. */
  readonly #owners = new Queue<string>();
  /** Whose turn it is, and the items left of it. */
  #current: string | undefined;
  #left = 0;
  #newcomersServed = 0;
  #size = 0;

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

  /** Returns the number of items of one owner. */
  sizeOf(owner: string): number {
    return this.#items.get(owner)?.size ?? 0;
  }

  /** Adds an item after the others of its owner. */
  add(owner: string, item: T): void {
    let items = this.#items.get(owner);
    if (items === undefined) {
      items = new Queue();
      this.#items.set(owner, items);
      this.#newcomers.push(owner);
    }
    items.push(item);
    this.#size += 1;
  }

  /** Takes the next item. */
  take(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#items.get(this.#next() as string)?.shift();
    this.#size -= 1;
    if (this.#size === 0) this.#endRound();
    return item;
  }

  /** Ends the present turn, if items of it are left. */
  endTurn(): void {
    if (this.#current !== undefined) this.#owners.push(this.#current);
    this.#current = undefined;
  }

  /** Returns the owner of the next item. */
  #next(): string | undefined {
    if (this.#newcomersServed < newcomersInRow && this.#newcomers.size > 0) return this.#newcomer();
    if (this.#current === undefined || this.sizeOf(this.#current) === 0) this.#beginTurn();
    const owner = this.#current;
    if (owner === undefined) return this.#newcomer();
    this.#left -= 1;
    if (this.#left === 0) this.endTurn();
    return owner;
  }

  /** Begins the turn of the next owner that has items, if there is one that is no newcomer. */
  #beginTurn(): void {
    this.endTurn();
    this.#newcomersServed = 0;
    this.#left = this.#itemsOfTurn;
    do this.#current = this.#owners.shift();
    while (this.#current !== undefined && this.#hasLeft(this.#current));
  }

  #newcomer(): string | undefined {
    this.#newcomersServed += 1;
    const owner = this.#newcomers.shift();
    if (owner !== undefined) this.#owners.push(owner);
    return owner;
  }

  /** Forgets an owner that has nothing when its turn comes; returns whether it did. */
  #hasLeft(owner: string): boolean {
    if (this.sizeOf(owner) > 0) return false;
    return this.#items.delete(owner);
  }

  /** Forgets all owners: each is a newcomer again. */
  #endRound(): void {
    this.#items.clear();
    while (this.#owners.shift() !== undefined);
    this.#current = undefined;
    this.#newcomersServed = 0;
  }
}
