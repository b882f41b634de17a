/**
 * How many of something each key has. The key with most is found at once, however many keys there are.
 *
 * @example
 * const counts = new Counts();
 * counts.add('192.0.2.1', 1);
 * counts.most(); // '192.0.2.1'
 */
export class Counts {
  readonly #ofKey = new Map<string, number>();
  /** The keys with each count; the last set is never empty. */
  readonly #keys: Set<string>[] = [];

  get(key: string): number {
    return this.#ofKey.get(key) ?? 0;
  }

  /** Adds one to the count of a key, or takes one off. */
  add(key: string, change: 1 | -1): void {
    const before = this.get(key);
    const after = before + change;
    this.#keys[before]?.delete(key);
    if (after === 0) this.#ofKey.delete(key);
    else {
      this.#ofKey.set(key, after);
      const keys = this.#keys[after];
      if (keys === undefined) this.#keys[after] = new Set([key]);
      else keys.add(key);
    }
    while (this.#keys.at(-1)?.size === 0) this.#keys.pop();
  }

  /** Returns a key with the highest count; `undefined` if there is none. */
  most(): string | undefined {
    const [key] = this.#keys.at(-1) ?? [];
    return key;
  }
}
