interface RelayQueue {
  used: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
}

/** Requests under way of each relay: a number of them at once, while others wait in their order. */
export class RequestSlots {
  readonly #limit: number;
  readonly #relays = new Map<string, RelayQueue>();

  /** @param limit of each relay */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Waits for a slot and takes it; disposing of the result gives it back.
   *
   * @throws the signal's reason if it aborts first
   */
  async take(relayId: string, signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    const queue = this.#relays.get(relayId) ?? { used: 0, waiting: new Set() };
    this.#relays.set(relayId, queue);
    if (queue.used < this.#limit) queue.used += 1;
    else await this.#wait(queue, signal);
    return { [Symbol.dispose]: () => this.#give(relayId, queue) };
  }

  #wait({ waiting }: RelayQueue, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const grant = () => {
        waiting.delete(grant);
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = () => {
        waiting.delete(grant);
        reject(signal.reason);
      };
      waiting.add(grant);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  #give(relayId: string, queue: RelayQueue): void {
    const [next] = queue.waiting;
    if (next === undefined) queue.used -= 1;
    else next();
    if (queue.used === 0) this.#relays.delete(relayId);
  }
}
