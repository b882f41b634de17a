import { MemoryStore, type Store, type StoreReader, type StoreWriter } from '../../src/index.ts';

/** A store that remembers which keys committed transactions wrote. */
export class WatchedStore implements Store {
  readonly #store = new MemoryStore();
  /** `collection/key` of every committed change, in order. */
  readonly changes: string[] = [];

  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    return this.#store.read(work);
  }

  async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    const made: string[] = [];
    const result = await this.#store.write((tx) =>
      work({
        get: (collection, key) => tx.get(collection, key),
        list: (collection, range) => tx.list(collection, range),
        put: (collection, key, text) => {
          made.push(`${collection}/${key}`);
          return tx.put(collection, key, text);
        },
        delete: (collection, key) => {
          made.push(`${collection}/${key}`);
          return tx.delete(collection, key);
        },
      }),
    );
    this.changes.push(...made);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}
