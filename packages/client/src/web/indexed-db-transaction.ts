/** Reads and writes of one transaction of IndexedDB: one table, keys `<collection> NUL <key>`. */
import type { StoreRange, StoreWriter } from '../store/index.ts';
import { type IdbKeyRange, type IdbObjectStore, type IdbRequest, platform } from './platform.ts';

/** Sorts before every key, so that the keys of a collection are next to each other. */
const separator = '\0';

/** Sorts after every key and after every suffix of a prefix. */
const top = '\uffff';

export class IndexedDbTransaction implements StoreWriter {
  readonly #entries: IdbObjectStore;
  /** Whether something was put or deleted. */
  hasChanges = false;

  constructor(entries: IdbObjectStore) {
    this.#entries = entries;
  }

  get(collection: string, key: string): Promise<string | undefined> {
    return settled(this.#entries.get(collection + separator + key));
  }

  async list(collection: string, range: StoreRange = {}): Promise<(readonly [string, string])[]> {
    const { limit, reverse = false } = range;
    const keys = keyRange(collection, range);
    if (keys === undefined || limit === 0) return [];
    const rows =
      reverse && limit !== undefined
        ? await this.#last(keys, limit)
        : await this.#first(keys, limit);
    if (reverse) rows.reverse();
    const start = collection.length + separator.length;
    return rows.map(([key, text]) => [key.slice(start), text] as const);
  }

  /** Resolves at once: what a put fails with aborts the transaction, whose end is awaited. */
  async put(collection: string, key: string, text: string): Promise<void> {
    this.#entries.put(text, collection + separator + key);
    this.hasChanges = true;
  }

  async delete(collection: string, key: string): Promise<void> {
    this.#entries.delete(collection + separator + key);
    this.hasChanges = true;
  }

  async #first(range: IdbKeyRange, limit?: number): Promise<[string, string][]> {
    const [keys, texts] = await Promise.all([
      settled(this.#entries.getAllKeys(range, limit)),
      settled(this.#entries.getAll(range, limit)),
    ]);
    return keys.map((key, index) => [key, texts[index] as string]);
  }

  /**
   * Returns the last rows, in ascending order. `getAll` reads forwards only: a cursor finds the first
   * key of them, in two steps instead of one for each row.
   */
  async #last(range: IdbKeyRange, limit: number): Promise<[string, string][]> {
    const first = await this.#keyBeforeEnd(range, limit - 1);
    if (first === undefined) return await this.#first(range);
    const { upper, upperOpen } = range;
    return await this.#first(platform.IDBKeyRange.bound(first, upper, false, upperOpen));
  }

  /** Returns the key with so many others after it; `undefined` if there are not as many. */
  #keyBeforeEnd(range: IdbKeyRange, others: number): Promise<string | undefined> {
    const request = this.#entries.openKeyCursor(range, 'prev');
    let isThere = others === 0;
    return new Promise((resolve, reject) => {
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (cursor === null || isThere) resolve(cursor?.key);
        else cursor.advance(others);
        isThere = true;
      };
    });
  }
}

/** The keys of a collection that a range selects; `undefined` if there can be none. */
function keyRange(
  collection: string,
  { prefix = '', after, before }: StoreRange,
): IdbKeyRange | undefined {
  const isAfter = after !== undefined && after >= prefix;
  const lower = isAfter ? after : prefix;
  const end = prefix + top;
  const upper = before !== undefined && before < end ? before : end;
  if (lower >= upper) return undefined;
  const start = collection + separator;
  return platform.IDBKeyRange.bound(start + lower, start + upper, isAfter, true);
}

/** The result of a request. */
export function settled<T>(request: IdbRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
