/**
 * The store of a client: ordered texts under (collection, key), with transactions. It is small, so
 * that memory, a SQLite file and IndexedDB can implement it. Keys are ASCII and sort by code unit.
 */

/** Selects the keys of {@link StoreReader.list}. */
export interface StoreRange {
  /** Only keys with this prefix. */
  readonly prefix?: string;
  /** Only keys greater than this one. */
  readonly after?: string;
  /** Only keys less than this one. */
  readonly before?: string;
  /** Maximum number of entries, from the smallest key on (or the greatest, see `reverse`). */
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** A consistent snapshot. */
export interface StoreReader {
  get(collection: string, key: string): Promise<string | undefined>;
  list(collection: string, range?: StoreRange): Promise<readonly (readonly [string, string])[]>;
}

/** A write transaction; the only way to write. */
export interface StoreWriter extends StoreReader {
  put(collection: string, key: string, text: string): Promise<void>;
  delete(collection: string, key: string): Promise<void>;
}

/**
 * Stores the keys, verified state and messages of one device. Implement it to use another engine.
 * `work` must await nothing but calls of its transaction: an engine may end an idle transaction,
 * and runs one at a time.
 */
export interface Store extends AsyncDisposable {
  /** Runs `work` on a consistent snapshot. */
  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T>;
  /**
   * Runs `work` atomically; durable when the promise resolves. An error rolls all writes back. In
   * IndexedDB a transaction ends by itself when `work` awaits anything else: rows that were put before
   * are stored then, although the write fails.
   */
  write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T>;
  /**
   * Waits until this caller alone holds the lock, among all that have the store open: in this
   * process, in other processes, tabs and workers. Disposing releases it; the death of its owner
   * does too. Without this method, each program on a store follows the account for itself.
   *
   * @param name ASCII letters, digits and `-`
   * @throws the signal's reason
   */
  lock?(name: string, options: { readonly signal: AbortSignal }): Promise<Disposable>;
  /**
   * Calls `changed` soon after every commit, of this store object and of others on the same data; it
   * may be called once for several commits, and without one. Disposing ends it. Without this method,
   * only commits of this client are noticed at once.
   */
  watch?(changed: () => void): Disposable;
}
