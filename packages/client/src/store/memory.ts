import { type Store, type StoreRange, type StoreWriter, Turnstile } from './types.ts';

type Tables = Map<string, Map<string, string>>;

/** A store that lives and dies with the process. */
export class MemoryStore implements Store {
  #tables: Tables = new Map();
  readonly #turnstile = new Turnstile();

  read<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(() => work(new MemoryTransaction(this.#tables)));
  }

  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(async () => {
      const copy: Tables = new Map([...this.#tables].map(([name, rows]) => [name, new Map(rows)]));
      const result = await work(new MemoryTransaction(copy));
      this.#tables = copy;
      return result;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class MemoryTransaction implements StoreWriter {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async get(collection: string, key: string): Promise<string | undefined> {
    return this.#tables.get(collection)?.get(key);
  }

  async list(
    collection: string,
    { prefix = '', after, limit, reverse = false }: StoreRange = {},
  ): Promise<(readonly [string, string])[]> {
    const entries = [...(this.#tables.get(collection) ?? [])]
      .filter(([key]) => key.startsWith(prefix) && (after === undefined || key > after))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    if (reverse) entries.reverse();
    return limit === undefined ? entries : entries.slice(0, limit);
  }

  async put(collection: string, key: string, text: string): Promise<void> {
    let rows = this.#tables.get(collection);
    if (rows === undefined) {
      rows = new Map();
      this.#tables.set(collection, rows);
    }
    rows.set(key, text);
  }

  async delete(collection: string, key: string): Promise<void> {
    this.#tables.get(collection)?.delete(key);
  }
}
