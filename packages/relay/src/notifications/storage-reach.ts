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
  /** Reads from storage; rejects if that is out of reach. */
  readonly #probe: () => Promise<unknown>;
  #isReached = true;
  /** Whether another process reached storage after this one last asked. */
  #isReachedElsewhere = false;
  #isCutOff = false;
  /** Whether another process asked since the probe under way began. */
  #isAsked = false;
  #isProbing = false;
  #isStopped = false;

  constructor(
    { bus, probe }: { readonly bus: Bus; readonly probe: () => Promise<unknown> },
    observed: Pick<RelayContext, 'log' | 'metrics'>,
  ) {
    this.#bus = bus;
    this.#probe = probe;
    this.#observed = observed;
    this.#subscription = bus.subscribe(({ kind }) => {
      if (kind === 'storage-reached') this.#isReachedElsewhere = true;
      if (kind !== 'storage-lost') return;
      // It may come from the process that answered before: the others answer again.
      this.#isReachedElsewhere = false;
      this.#isAsked = true;
      if (this.#isReached && !this.#isProbing) void this.#answer();
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
    // An answer counts until storage was out of reach once more.
    const isReachedElsewhere = !this.#isReached && this.#isReachedElsewhere;
    this.#isReachedElsewhere = false;
    this.#isReached = isReached;
    if (isReached && this.#isCutOff) {
      this.#isCutOff = false;
      reachesStorageAgain(this.#observed);
    }
    if (isReached || this.#isCutOff) return;
    // Another process may only have been the first to reach it again: this one tries once more.
    if (isReachedElsewhere || !this.#bus.isConnected) this.#cutOff();
    else this.#bus.publish([{ kind: 'storage-lost' }]);
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    this.#subscription[Symbol.dispose]();
  }

  /**
   * Answers with what a probe finds that began after the question: in an outage of storage as a
   * whole, this process may only not have noticed yet.
   */
  async #answer(): Promise<void> {
    this.#isProbing = true;
    while (this.#isAsked && this.#isReached && !this.#isStopped) {
      this.#isAsked = false;
      const isReached = await this.#probe().then(
        () => true,
        () => false,
      );
      if (isReached && this.#isReached && !this.#isAsked && !this.#isStopped) {
        this.#bus.publish([{ kind: 'storage-reached' }]);
      }
    }
    this.#isProbing = false;
  }

  #cutOff(): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    cutOffFromStorage(this.#observed);
    for (const listener of this.#listeners) listener();
  }
}
