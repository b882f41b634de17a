import type { AggregateKey, WriteListener, Writer } from './types.ts';

/** Listeners that are told which aggregates change; see `Storage.watch`. */
export class WriteListeners {
  readonly #listeners: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Runs a write, and tells the listeners when its work first begins and, if it did, when it ended.
   *
   * @param write runs the work it is given, once or several times
   */
  async around<T>(
    aggregates: readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    write: (work: (tx: Writer) => Promise<T>) => Promise<T>,
  ): Promise<T> {
    let hasBegun = false;
    try {
      return await write((tx) => {
        if (!hasBegun) for (const listener of this.#listeners) listener.begins(aggregates);
        hasBegun = true;
        return work(tx);
      });
    } finally {
      if (hasBegun) for (const listener of this.#listeners) listener.ended(aggregates);
    }
  }

  /** Tells the listeners that another process has written these aggregates. */
  changedElsewhere(aggregates: readonly AggregateKey[]): void {
    for (const listener of this.#listeners) {
      listener.begins(aggregates);
      listener.ended(aggregates);
    }
  }

  /** Tells the listeners that another process may have written anything. */
  changed(): void {
    for (const listener of this.#listeners) listener.changed();
  }
}
