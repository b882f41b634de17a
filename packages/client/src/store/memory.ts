import '../dispose-symbols.ts';
import { LocalLocks } from './local-locks.ts';
import { Mutex } from './mutex.ts';
import type { Store, StoreRange, StoreWriter } from './types.ts';
import { Watchers } from './watchers.ts';

type Tables = Map<string, Map<string, string>>;

/**
 * A store in memory, lost when the process ends.
 *
 * @example
 * import { MemoryStore } from '@posthouse/client';
 * const store = new MemoryStore();
 */
export class MemoryStore implements Store {
  readonly #tables: Tables = new Map();
  readonly #turnstile = new Mutex();
  readonly #locks = new LocalLocks();
  readonly #watchers = new Watchers();

  read<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(() => work(new MemoryTransaction(this.#tables)));
  }

  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(async () => {
      const transaction = new MemoryTransaction(this.#tables);
      try {
        const result = await work(transaction);
        this.#watchers.notify();
        return result;
      } catch (error) {
        transaction.undo();
        throw error;
      }
    });
  }

  lock(name: string, options: { readonly signal: AbortSignal }): Promise<Disposable> {
    return this.#locks.lock(name, options);
  }

  watch(changed: () => void): Disposable {
    return this.#watchers.add(changed);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class MemoryTransaction implements StoreWriter {
  readonly #tables: Tables;
  /** The previous value of each change, in order. */
  readonly #before: { readonly rows: Map<string, string>; key: string; text?: string }[] = [];

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async get(collection: string, key: string): Promise<string | undefined> {
    return this.#tables.get(collection)?.get(key);
  }

  async list(
    collection: string,
    { prefix = '', after, before, limit, reverse = false }: StoreRange = {},
  ): Promise<(readonly [string, string])[]> {
    const entries = [...(this.#tables.get(collection) ?? [])]
      .filter(([key]) => key.startsWith(prefix))
      .filter(([key]) => after === undefined || key > after)
      .filter(([key]) => before === undefined || key < before)
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
    this.#remember(rows, key);
    rows.set(key, text);
  }

  async delete(collection: string, key: string): Promise<void> {
    const rows = this.#tables.get(collection);
    if (rows === undefined) return;
    this.#remember(rows, key);
    rows.delete(key);
  }

  /** Rolls every change back, the last one first. */
  undo(): void {
    for (const { rows, key, text } of this.#before.reverse()) {
      if (text === undefined) rows.delete(key);
      else rows.set(key, text);
    }
  }

  #remember(rows: Map<string, string>, key: string): void {
    const text = rows.get(key);
    this.#before.push({ rows, key, ...(text !== undefined && { text }) });
  }
}
