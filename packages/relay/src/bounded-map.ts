/**
 * A map of bounded size that evicts the least recently used entries. Every cache uses it.
 *
 * @example
 * const names = new BoundedMap<string, string>(10_000, (name) => name.length);
 */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #capacity: number;
  readonly #sizeOf: (value: V) => number;
  #total = 0;

  /**
   * @param capacity entries, at least 1; or the sum of their sizes
   * @param sizeOf returns the size of a value, which never changes; 1 by default
   */
  constructor(capacity: number, sizeOf: (value: V) => number = () => 1) {
    this.#capacity = capacity;
    this.#sizeOf = sizeOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns the value and marks it as just used. */
  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  /** Returns the value and leaves its place in the order. */
  peek(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#total += this.#sizeOf(value);
    while (this.#total > this.#capacity) {
      const [oldest] = this.#entries.keys();
      this.delete(oldest as K);
    }
  }

  delete(key: K): boolean {
    const value = this.#entries.get(key);
    if (value === undefined) return false;
    this.#total -= this.#sizeOf(value);
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#total = 0;
  }

  entries(): IterableIterator<[K, V]> {
    return this.#entries.entries();
  }
}
