import type { AggregateKey, WriteListener, Writer } from './types.ts';

/** Those who are told which aggregates change; see `Storage.watch`. */
export class WriteListeners {
  readonly #listeners: WriteListener[] = [];

  add(listener: WriteListener): void {
    this.#listeners.push(listener);
  }

  tell(aggregates: readonly AggregateKey[] | 'any'): void {
    for (const listener of this.#listeners) listener(aggregates);
  }

  /** Returns the work of a write, of which the listeners are told when it begins. */
  beginning<T>(
    aggregates: readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): (tx: Writer) => Promise<T> {
    return (tx) => {
      this.tell(aggregates);
      return work(tx);
    };
  }
}
