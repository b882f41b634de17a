import type { PeerClock } from './clock.ts';

interface Waiter {
  readonly bytes: number;
  readonly owner: object | undefined;
  readonly grant: () => void;
}

export interface BytePoolOptions {
  readonly capacity: number;
  /** Up to which requests are granted; what `tryAdd` takes has the rest as well. */
  readonly grantable: number;
  readonly clock: PeerClock;
  /** How long the pool may be full without any bytes given back. */
  readonly patience: number;
  /** Called when that time has passed. */
  readonly stuck: () => void;
}

/**
 * The bytes held for one Peer ID in one direction. Requests for more wait in their order. If all
 * bytes are held by owners that need more before they can give any back, one of them at a time is
 * favoured: it gets what it asks for until it leaves.
 */
export class BytePool {
  readonly #options: BytePoolOptions;
  readonly #waiters: Waiter[] = [];
  #used = 0;
  #favoured: object | undefined;
  #timer: Disposable | undefined;

  constructor(options: BytePoolOptions) {
    this.#options = options;
  }

  get used(): number {
    return this.#used;
  }

  /** The largest request that can be granted. */
  get grantable(): number {
    return this.#options.grantable;
  }

  get isFull(): boolean {
    return this.#used >= this.#options.capacity || this.#waiters.length > 0;
  }

  /** Takes bytes that are held already, with or without room. */
  add(bytes: number): void {
    this.#used += bytes;
    this.#watch();
  }

  /** Takes bytes that are held already, if they have room; returns whether they had. */
  tryAdd(bytes: number): boolean {
    if (this.#used + bytes > this.#options.capacity) return false;
    this.#used += bytes;
    return true;
  }

  /** Takes bytes if they have room and no earlier request waits; returns whether it did. */
  tryAcquire(bytes: number, owner?: object): boolean {
    const favoured = owner !== undefined && owner === this.#favoured;
    if (!favoured && (this.#waiters.length > 0 || !this.#fits(bytes))) return false;
    this.#used += bytes;
    return true;
  }

  /**
   * Waits until so many bytes have room, then takes them. A request for no bytes waits for room.
   *
   * @param owner if it may be favoured; it then calls {@link leave} at its end
   * @throws the signal's reason when it aborts
   */
  acquire(bytes: number, signal: AbortSignal, owner?: object): Promise<void> {
    return this.tryAcquire(bytes, owner) ? Promise.resolve() : this.#wait(bytes, signal, owner);
  }

  /** Ends the favour of an owner that needs no more. */
  leave(owner: object): void {
    if (this.#favoured !== owner) return;
    this.#favoured = undefined;
    this.#grant();
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    if (bytes === 0) return;
    this.#used -= bytes;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#grant();
    this.#watch();
  }

  #grant(): void {
    for (let head = this.#waiters[0]; head !== undefined; head = this.#waiters[0]) {
      if (!this.#fits(head.bytes)) {
        if (this.#favoured !== undefined || head.owner === undefined) return;
        this.#favoured = head.owner;
      }
      this.#waiters.shift();
      this.#used += head.bytes;
      head.grant();
    }
  }

  #wait(bytes: number, signal: AbortSignal, owner?: object): Promise<void> {
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
        owner,
        grant: () => {
          signal.removeEventListener('abort', give);
          resolve();
        },
      };
      signal.addEventListener('abort', give, { once: true });
      this.#waiters.push(waiter);
      this.#grant();
      this.#watch();
    });
  }

  #fits(bytes: number): boolean {
    return this.#used + Math.max(bytes, 1) <= this.#options.grantable;
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
