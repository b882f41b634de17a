/** A queue whose first and last item are taken in constant time. */
export class Queue<T> {
  #items: (T | undefined)[] = [];
  #taken = 0;

  get size(): number {
    return this.#items.length - this.#taken;
  }

  /** The item that is taken next. */
  get first(): T | undefined {
    return this.#items[this.#taken];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Takes the item that was added last. */
  pop(): T | undefined {
    return this.size === 0 ? undefined : this.#items.pop();
  }

  shift(): T | undefined {
    const item = this.#items[this.#taken];
    if (this.size === 0) return undefined;
    this.#items[this.#taken] = undefined;
    this.#taken += 1;
    if (2 * this.#taken >= this.#items.length) {
      this.#items = this.#items.slice(this.#taken);
      this.#taken = 0;
    }
    return item;
  }
}
