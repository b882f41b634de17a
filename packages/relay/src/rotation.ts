import { Queue } from './queue.ts';

/** What waits, in rotation of its owners: an owner with many items delays another by one. */
export class Rotation<T> {
  /** In the order of their turns. */
  readonly #owners = new Queue<string>();
  readonly #items = new Map<string, Queue<T>>();
  #size = 0;

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** Items of all owners. */
  get size(): number {
    return this.#size;
  }

  /** Returns the number of items of one owner. */
  sizeOf(owner: string): number {
    return this.#items.get(owner)?.size ?? 0;
  }

  /** Adds an item after the others of its owner. */
  add(owner: string, item: T): void {
    const queue = this.#items.get(owner) ?? new Queue<T>();
    if (queue.size === 0) {
      this.#items.set(owner, queue);
      this.#owners.push(owner);
    }
    queue.push(item);
    this.#size += 1;
  }

  /** Takes the next item. */
  take(): T | undefined {
    const owner = this.#owners.shift();
    if (owner === undefined) return undefined;
    this.#size -= 1;
    const queue = this.#items.get(owner);
    const item = queue?.shift();
    if (queue === undefined || queue.size === 0) this.#items.delete(owner);
    else this.#owners.push(owner);
    return item;
  }
}
