/** An entry, and whether it was used since it last was the next one to evict. */
interface Entry<V> {
  value: V;
  isUsed: boolean;
}

/**
 * How many entries that were used are passed over to find one to evict: so no `set` takes long, however
 * many were used.
 */
const mostPassedOver = 64;

export interface BoundedMapOptions<V> {
  /** Returns the size of a value, which never changes; 1 by default. */
  readonly sizeOf?: (value: V) => number;
  /** Called with each value that is evicted. */
  readonly evicted?: (value: V) => void;
}

/**
 * A map of bounded size. Every cache uses it. It evicts the oldest entries; one that was used meanwhile
 * counts as new once more. To note a use costs next to nothing: exact order of use would take two
 * changes of the map for each look-up.
 *
 * @example
 * const names = new BoundedMap<string, string>(10_000, { sizeOf: (name) => name.length });
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #capacity: number;
  readonly #options: BoundedMapOptions<V>;
  #total = 0;
  /**
   * Where the next one to evict is: all before it are gone. A search from the beginning would pass over
   * what was evicted, thousands of places each time.
   */
  #oldest: MapIterator<[K, Entry<V>]> | undefined;

  /** @param capacity entries, at least 1; or the sum of their sizes: a larger value is not kept */
  constructor(capacity: number, options: BoundedMapOptions<V> = {}) {
    this.#capacity = capacity;
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value and notes that it was used. */
  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.isUsed = true;
    return entry.value;
  }

  /** Returns the value; for its eviction that is no use. */
  peek(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  set(key: K, value: V): void {
    const { sizeOf } = this.#options;
    const size = sizeOf?.(value) ?? 1;
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#total += size - (sizeOf?.(known.value) ?? 1);
      known.value = value;
      known.isUsed = true;
      this.#evictTo(this.#capacity);
      return;
    }
    // Before it is there: otherwise it would be the only one that was not used.
    this.#evictTo(this.#capacity - size);
    if (size > this.#capacity) return;
    this.#entries.set(key, { value, isUsed: false });
    this.#total += size;
  }

  delete(key: K): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#total -= this.#options.sizeOf?.(entry.value) ?? 1;
    // An iterator that is not used for long would keep old tables of the map in memory.
    this.#oldest = undefined;
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#oldest = undefined;
    this.#total = 0;
  }

  *entries(): IterableIterator<[K, V]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  #evictTo(most: number): void {
    let left = mostPassedOver;
    while (this.#total > most) {
      this.#oldest ??= this.#entries.entries();
      const { done, value } = this.#oldest.next();
      if (done) {
        this.#oldest = undefined;
        return;
      }
      const [key, entry] = value;
      this.#entries.delete(key);
      if (entry.isUsed && left > 0) {
        // It comes up again, as one that was not used.
        left -= 1;
        entry.isUsed = false;
        this.#entries.set(key, entry);
        continue;
      }
      this.#total -= this.#options.sizeOf?.(entry.value) ?? 1;
      this.#options.evicted?.(entry.value);
    }
  }
}
