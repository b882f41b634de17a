/** Stores for tests of conversations. */
import type { Store, StoreReader, StoreWriter } from '../../src/index.ts';

/** A store that counts the entries that it returns, and may crash. */
export class CountedStore implements Store {
  readonly #store: Store;
  /** Calls of `list`, and entries returned by it and by `get`. */
  reads = { lists: 0, entries: 0 };
  /** Writes until one fails before it commits. */
  writesLeft = Number.POSITIVE_INFINITY;
  /** Messages that one transaction added to their conversations, at most. */
  mostPlaced = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    return this.#store.read((tx) => work(this.#counted(tx)));
  }

  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#store.write(async (tx) => {
      let placed = 0;
      const result = await work({
        ...this.#counted(tx),
        put: (collection, key, text) => {
          placed += Number(collection === 'shown-messages');
          this.mostPlaced = Math.max(this.mostPlaced, placed);
          return tx.put(collection, key, text);
        },
        delete: (collection, key) => tx.delete(collection, key),
      });
      this.writesLeft -= 1;
      if (this.writesLeft < 0) throw new Error('crash');
      return result;
    });
  }

  #counted(tx: StoreReader): StoreReader {
    return {
      get: (collection, key) => {
        this.reads.entries += 1;
        return tx.get(collection, key);
      },
      list: async (collection, range) => {
        const found = await tx.list(collection, range);
        this.reads.lists += 1;
        this.reads.entries += found.length;
        return found;
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** Collections that stores have since there are conversations. */
const newCollections = [
  ...['shown-messages', 'unread-messages', 'conversations', 'conversations-by-time'],
  ...['conversations-built', 'message-order', 'unsent-messages'],
];

/** Makes a store what an earlier version would have written. */
export async function asEarlierVersion(store: Store): Promise<void> {
  await store.write(async (tx) => {
    for (const collection of newCollections) {
      for (const [key] of await tx.list(collection)) await tx.delete(collection, key);
    }
    for (const [key, text] of await tx.list('messages')) {
      const { order } = JSON.parse(text);
      await tx.put('arrivals', String(order).padStart(16, '0'), JSON.stringify(key));
    }
  });
}
