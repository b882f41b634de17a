import '../dispose-symbols.ts';
/** The watchers of a store object: functions to call after commits. */
export class Watchers {
  readonly #all = new Set<{ readonly changed: () => void }>();

  get size(): number {
    return this.#all.size;
  }

  add(changed: () => void): Disposable {
    const watcher = { changed };
    this.#all.add(watcher);
    return { [Symbol.dispose]: () => void this.#all.delete(watcher) };
  }

  notify(): void {
    for (const { changed } of [...this.#all]) changed();
  }
}
