import type { Bus } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';

/** The bus of a relay with one process: delivers notices to every listener at once, in order. */
export class MemoryBus implements Bus {
  readonly isShared: boolean = false;
  readonly isConnected: boolean = true;
  readonly #listeners = new Set<(notice: Notice) => void>();
  readonly #failed: (error: unknown) => void;

  /** @param failed called with what a listener throws; a lost notice loses no data */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  publish(notices: readonly Notice[]): void {
    for (const notice of notices) {
      for (const listener of this.#listeners) {
        try {
          listener(notice);
        } catch (error) {
          this.#failed(error);
        }
      }
    }
  }

  subscribe(listener: (notice: Notice) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
