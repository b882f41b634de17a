import type { PeerClock } from './clock.ts';

interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
}

export interface BytePoolOptions {
  readonly capacity: number;
  readonly clock: PeerClock;
  /** How long the pool may be full without any bytes given back. */
  readonly patience: number;
  /** Called when that time has passed. */
  readonly stuck: () => void;
}

/**
 * The bytes held for one Peer ID in one direction. `acquire` waits for room, first come first
 * served; `add` does not: after it, the caller stops reading while the pool is full.
 */
export class BytePool {
  readonly #options: BytePoolOptions;
  readonly #waiters: Waiter[] = [];
  #used = 0;
  #timer: Disposable | undefined;

  constructor(options: BytePoolOptions) {
    this.#options = options;
  }

  get used(): number {
    return this.#used;
  }

  get isFull(): boolean {
    return this.#used >= this.#options.capacity || this.#waiters.length > 0;
  }

  /** Takes bytes that are held already. */
  add(bytes: number): void {
    this.#used += bytes;
    this.#watch();
  }

  /** Takes bytes if they have room and no earlier request waits; returns whether it did. */
  tryAcquire(bytes: number): boolean {
    if (this.#waiters.length > 0 || !this.#fits(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  /**
   * Waits until so many bytes have room, then takes them. A request for no bytes waits for room.
   *
   * @throws the signal's reason when it aborts
   */
  acquire(bytes: number, signal: AbortSignal): Promise<void> {
    return this.tryAcquire(bytes) ? Promise.resolve() : this.#wait(bytes, signal);
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    if (bytes === 0) return;
    this.#used -= bytes;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    for (let head = this.#waiters[0]; head !== undefined; head = this.#waiters[0]) {
      if (!this.#fits(head.bytes)) break;
      this.#waiters.shift();
      this.#used += head.bytes;
      head.grant();
    }
    this.#watch();
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const give = () => {
        const at = this.#waiters.indexOf(waiter);
        if (at !== -1) this.#waiters.splice(at, 1);
        reject(signal.reason);
      };
      const waiter = {
        bytes,
        grant: () => {
          signal.removeEventListener('abort', give);
          resolve();
        },
      };
      signal.addEventListener('abort', give, { once: true });
      this.#waiters.push(waiter);
      this.#watch();
    });
  }

  #fits(bytes: number): boolean {
    return this.#used + Math.max(bytes, 1) <= this.#options.capacity;
  }

  #watch(): void {
    if (this.#timer !== undefined || !this.isFull) return;
    const { clock, patience, stuck } = this.#options;
    this.#timer = clock.after(patience, () => {
      this.#timer = undefined;
      if (this.isFull) stuck();
    });
  }
}
