import type { PeerClock } from './clock.ts';

interface Waiter {
  readonly bytes: number;
  /** May be favoured. */
  readonly owner?: object;
  readonly grant: () => void;
}

/**
 * Bytes that are held for all peers together. A program adds what it holds for them itself to `used`;
 * above the capacity, streams that bring more are reset.
 *
 * @example
 * const held = new ByteTotal(defaultPeerLimits.heldBytesOfAll);
 * held.used += 1_000_000;
 */
export class ByteTotal {
  readonly capacity: number;
  used = 0;

  /** @param capacity bytes up to which more are taken */
  constructor(capacity: number) {
    this.capacity = capacity;
  }
}

export interface BytePoolOptions {
  /** Bytes up to which {@link BytePool.tryAdd} takes more. */
  readonly capacity: number;
  /** Shared with other pools. */
  readonly total: ByteTotal;
  /** Bytes up to which requests are granted. */
  readonly grantable: number;
  readonly clock: PeerClock;
  /** How long the pool may be full without any bytes given back. */
  readonly patience: number;
  /** Called when that time has passed. */
  readonly stuck: () => void;
}

/**
 * The bytes held for one Peer ID in one direction, of the streams that one side opened. Requests for
 * more wait in their order. If all bytes are held by owners that need more before they can give any
 * back, one of them at a time is favoured: it gets what it asks for until it gives its bytes back.
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
    this.#take(bytes);
    this.#watch();
  }

  /** Takes bytes that are held already, if they have room; returns whether they had. */
  tryAdd(bytes: number): boolean {
    const { capacity, total } = this.#options;
    if (bytes > 0 && this.#used + bytes > capacity) return false;
    if (bytes > 0 && total.used + bytes > total.capacity) return false;
    this.#take(bytes);
    return true;
  }

  /** Takes bytes if they have room and no earlier request waits; returns whether it did. */
  tryAcquire(bytes: number): boolean {
    if (this.#waiters.length > 0 || !this.#fits(bytes)) return false;
    this.#take(bytes);
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

  /**
   * Takes bytes as soon as they have room, or the owner is favoured, and then calls `granted`. The
   * owner calls {@link unfavour} when it has given its bytes back, and {@link leave} at its end.
   */
  request(bytes: number, owner: object, granted: () => void): void {
    if (owner === this.#favoured) this.#take(bytes);
    else if (!this.tryAcquire(bytes)) {
      this.#enqueue({ bytes, owner, grant: granted });
      return;
    }
    granted();
  }

  /** Removes the requests of an owner that needs no more; what it holds it still has. */
  withdraw(owner: object): void {
    const waiting = this.#waiters.filter((one) => one.owner !== owner);
    if (waiting.length === this.#waiters.length) return;
    this.#waiters.splice(0, this.#waiters.length, ...waiting);
    this.#grant();
  }

  /** Ends the favour of an owner. */
  unfavour(owner: object): void {
    if (this.#favoured !== owner) return;
    this.#favoured = undefined;
    this.#grant();
  }

  /** Ends requests and favour of an owner. */
  leave(owner: object): void {
    this.withdraw(owner);
    this.unfavour(owner);
  }

  /** Gives bytes back. */
  release(bytes: number): void {
    if (bytes === 0) return;
    this.#take(-bytes);
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#grant();
    this.#watch();
  }

  #take(bytes: number): void {
    this.#used += bytes;
    this.#options.total.used += bytes;
  }

  #grant(): void {
    for (let head = this.#waiters[0]; head !== undefined; head = this.#waiters[0]) {
      if (!this.#fits(head.bytes)) {
        if (head.owner === undefined || (this.#favoured ?? head.owner) !== head.owner) return;
        this.#favoured = head.owner;
      }
      this.#waiters.shift();
      this.#take(head.bytes);
      head.grant();
    }
  }

  #enqueue(waiter: Waiter): void {
    this.#waiters.push(waiter);
    this.#grant();
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
        this.#grant();
      };
      const waiter = {
        bytes,
        grant: () => {
          signal.removeEventListener('abort', give);
          resolve();
        },
      };
      signal.addEventListener('abort', give, { once: true });
      this.#enqueue(waiter);
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
