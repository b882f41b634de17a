import { Collection } from '../store/collection.ts';
import type { StoreRange, StoreReader, StoreWriter } from '../store/index.ts';
import { positionKey } from '../store/row-keys.ts';

interface Order {
  /** Number of the newest row. */
  readonly head: number;
  /** Every row up to this number was removed. */
  readonly removed: number;
  /** Key up to which the rows of an earlier version have numbers; absent once all have. */
  readonly numberedThrough?: string;
}

/** Rows of an earlier version that get a number in one transaction. */
const numberingBatch = 50;

/** Rows removed in one transaction, for each that is added. */
const removalBatch = 2;

/** A collection that keeps its newest rows, by the order in which they were added. */
export class NewestRows<T> {
  readonly #rows: Collection<T>;
  readonly #keys: Collection<string>;
  readonly #orders = new Collection<Order>('row-orders');
  readonly #capacity: number;

  /** @param capacity number of rows; more are kept only until they are removed, in small steps */
  constructor(name: string, capacity: number) {
    this.#rows = new Collection(name);
    this.#keys = new Collection(`${name}-order`);
    this.#capacity = capacity;
  }

  async get(tx: StoreReader, key: string): Promise<T | undefined> {
    return await this.#rows.get(tx, key);
  }

  async list(
    tx: StoreReader,
    range: StoreRange,
  ): Promise<{ readonly key: string; readonly value: T }[]> {
    return await this.#rows.list(tx, range);
  }

  /** Removes a row; its number stays until it is as old. */
  async delete(tx: StoreWriter, key: string): Promise<void> {
    await this.#rows.delete(tx, key);
  }

  /** Adds a row, and removes the oldest ones over the capacity. */
  async put(tx: StoreWriter, key: string, value: T): Promise<void> {
    let order = await this.#number(tx);
    order = { ...order, head: order.head + 1 };
    await this.#rows.put(tx, key, value);
    await this.#keys.put(tx, positionKey(order.head), key);
    const until = Math.min(order.head - this.#capacity, order.removed + removalBatch);
    let { removed } = order;
    while (removed < until) {
      removed += 1;
      const old = await this.#keys.get(tx, positionKey(removed));
      await this.#keys.delete(tx, positionKey(removed));
      if (old !== undefined && old !== key) await this.#rows.delete(tx, old);
    }
    await this.#orders.put(tx, this.#rows.name, { ...order, removed });
  }

  /** Gives rows of an earlier version, which have no order, their numbers in steps. */
  async #number(tx: StoreWriter): Promise<Order> {
    const known = await this.#orders.get(tx, this.#rows.name);
    const { numberedThrough, ...order } = known ?? { head: 0, removed: 0, numberedThrough: '' };
    if (numberedThrough === undefined) return order;
    const found = await this.#rows.list(tx, { after: numberedThrough, limit: numberingBatch });
    let { head } = order;
    for (const { key } of found) {
      head += 1;
      await this.#keys.put(tx, positionKey(head), key);
    }
    const last = found.length < numberingBatch ? undefined : found.at(-1)?.key;
    return { ...order, head, ...(last !== undefined && { numberedThrough: last }) };
  }
}
