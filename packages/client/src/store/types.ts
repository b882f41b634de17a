/**
 * What the client keeps: ordered texts under (collection, key), with transactions. Small on
 * purpose, so that memory, a SQLite file and IndexedDB can all hold it. Keys are ASCII and sort by
 * code unit.
 */

export interface StoreRange {
  /** Only keys that begin so. */
  readonly prefix?: string;
  /** Only keys greater than this one. */
  readonly after?: string;
  /** Only keys less than this one. */
  readonly before?: string;
  /** At the most so many entries, from the smallest key on (or the greatest, see `reverse`). */
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** A consistent snapshot. */
export interface StoreReader {
  get(collection: string, key: string): Promise<string | undefined>;
  list(collection: string, range?: StoreRange): Promise<readonly (readonly [string, string])[]>;
}

/** A transaction. A write can only be made through it. */
export interface StoreWriter extends StoreReader {
  put(collection: string, key: string, text: string): Promise<void>;
  delete(collection: string, key: string): Promise<void>;
}

/**
 * `work` awaits nothing but the transaction it is given: an engine may end a transaction that is
 * left idle, and runs one at a time.
 */
export interface Store extends AsyncDisposable {
  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T>;
  /** All or nothing, durable when the promise resolves. What `work` throws undoes its writes. */
  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T>;
}
