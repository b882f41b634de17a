/**
 * What the client keeps: ordered texts under (collection, key), with transactions. Small on
 * purpose, so that memory, a SQLite file and IndexedDB can all hold it. Keys are ASCII and sort by
 * code unit.
 */
import { limits } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';

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

/** Records hold protocol objects of full depth in members of their own. */
const recordDepth = limits.jsonDepth + 8;

/** Not `JSON.parse`: what is kept is hashed and verified again. */
function parseRecord<V>(text: string): V {
  return parseJson(text, recordDepth) as V;
}

/** Typed access to one collection; values are JSON. */
export class Collection<V> {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  async get(tx: StoreReader, key: string): Promise<V | undefined> {
    const text = await tx.get(this.name, key);
    return text === undefined ? undefined : parseRecord<V>(text);
  }

  async list(
    tx: StoreReader,
    range?: StoreRange,
  ): Promise<{ readonly key: string; readonly value: V }[]> {
    const entries = await tx.list(this.name, range);
    return entries.map(([key, text]) => ({ key, value: parseRecord<V>(text) }));
  }

  put(tx: StoreWriter, key: string, value: V): Promise<void> {
    return tx.put(this.name, key, JSON.stringify(value));
  }

  delete(tx: StoreWriter, key: string): Promise<void> {
    return tx.delete(this.name, key);
  }
}

/** Runs works one after another: a connection holds one transaction at a time. */
export class Turnstile {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
