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
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#total = 0;
  }

  *entries(): IterableIterator<[K, V]> {
    for (const [key, { value }] of this.#entries) yield [key, value];
  }

  #evictTo(most: number): void {
    if (this.#total <= most) return;
    let left = mostPassedOver;
    // An entry that was moved to the end comes up again, as one that was not used.
    for (const [key, entry] of this.#entries) {
      if (entry.isUsed && left > 0) {
        left -= 1;
        entry.isUsed = false;
        this.#entries.delete(key);
        this.#entries.set(key, entry);
        continue;
      }
      this.delete(key);
      this.#options.evicted?.(entry.value);
      if (this.#total <= most) return;
    }
  }
}
