import type { Availability, Bus, RelayContext } from '../context.ts';
import { cutOffFromStorage, reachesStorageAgain } from '../observability/events.ts';

/**
 * Finds out whether this process alone cannot reach storage, so that its clients are better served by
 * another one. It asks the other processes: if one of them reaches storage, or the bus is out of
 * reach as well, this process is cut off. While no process reaches storage, connections stay.
 */
export class StorageReach implements Availability, Disposable {
  readonly #bus: Bus;
  readonly #observed: Pick<RelayContext, 'log' | 'metrics'>;
  readonly #listeners = new Set<() => void>();
  readonly #subscription: Disposable;
  #isReached = true;
  /** Whether another process reached storage since this one does not. */
  #isReachedElsewhere = false;
  #isCutOff = false;

  constructor(bus: Bus, observed: Pick<RelayContext, 'log' | 'metrics'>) {
    this.#bus = bus;
    this.#observed = observed;
    this.#subscription = bus.subscribe(({ kind }) => {
      if (kind === 'storage-lost' && this.#isReached) bus.publish([{ kind: 'storage-reached' }]);
      if (kind === 'storage-reached') this.#isReachedElsewhere = true;
    });
  }

  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  onCutOff(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Called when storage was out of reach for a while, again and again, and when it is reached. */
  update(isReached: boolean): void {
    if (!this.#bus.isShared) return;
    if (isReached || this.#isReached) this.#isReachedElsewhere = false;
    this.#isReached = isReached;
    if (isReached && this.#isCutOff) {
      this.#isCutOff = false;
      reachesStorageAgain(this.#observed);
    }
    if (isReached || this.#isCutOff) return;
    // Another process may only have been the first to reach it again: this one tries once more.
    if (this.#isReachedElsewhere || !this.#bus.isConnected) this.#cutOff();
    else this.#bus.publish([{ kind: 'storage-lost' }]);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  #cutOff(): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    cutOffFromStorage(this.#observed);
    for (const listener of this.#listeners) listener();
  }
}
