/** The state of an account for views: one object, replaced when something changed. */
import '../dispose-symbols.ts';
import type { Store } from '../store/index.ts';
import { type ConnectionEvent, lastConnection } from './event-log.ts';

/** What a view shows of the state of an account besides its lists. */
export interface AccountSnapshot<Status> {
  /** Numbers that this device stores. */
  readonly status: Status;
  /** The home relay's connection; `undefined` while no program with this store follows. */
  readonly connection: ConnectionEvent | undefined;
}

/**
 * An external store, as UI frameworks subscribe to it. It makes no connection; following does.
 *
 * @example
 * const end = account.state.subscribe(() => console.log(account.state.getSnapshot()?.status.outbox));
 * end();
 */
export class AccountState<Status> {
  readonly #store: Store;
  readonly #status: () => Promise<Status>;
  readonly #listeners = new Set<{ readonly changed: () => void }>();
  #watch: Disposable | undefined;
  #snapshot: AccountSnapshot<Status> | undefined;
  #text = '';
  #isRunning = false;
  #isOutdated = false;

  constructor(store: Store, status: () => Promise<Status>) {
    this.#store = store;
    this.#status = status;
  }

  /**
   * Calls `changed` when {@link getSnapshot} returns another object. @returns ends that
   * @example
   * const end = account.state.subscribe(() => console.log('changed'));
   * end();
   */
  readonly subscribe = (changed: () => void): (() => void) => {
    const listener = { changed };
    this.#listeners.add(listener);
    this.#watch ??= this.#store.watch?.(() => this.#refresh());
    this.#refresh();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#watch?.[Symbol.dispose]();
      this.#watch = undefined;
    };
  };

  /**
   * Returns the same object until something changed; `undefined` before the first is read.
   * @example
   * console.log(account.state.getSnapshot()?.connection?.state);
   */
  readonly getSnapshot = (): AccountSnapshot<Status> | undefined => this.#snapshot;

  #refresh(): void {
    this.#isOutdated = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    // A store that fails is reported by the call that needs it.
    this.#run().catch(() => undefined);
  }

  async #run(): Promise<void> {
    try {
      while (this.#isOutdated && this.#listeners.size > 0) {
        this.#isOutdated = false;
        const connection = (await this.#store.read(lastConnection))?.event;
        const snapshot = { status: await this.#status(), connection };
        const text = JSON.stringify(snapshot);
        if (text === this.#text) continue;
        this.#text = text;
        this.#snapshot = snapshot;
        for (const { changed } of this.#listeners) queueMicrotask(changed);
      }
    } finally {
      // In the same turn as the last look: a commit after it begins another run.
      this.#isRunning = false;
    }
  }
}
