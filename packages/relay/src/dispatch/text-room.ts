/** Something that waits for room. */
interface Waiter {
  readonly bytes: number;
  readonly grant: () => void;
}

export interface TextRoomOptions {
  /** Bytes of one relay. */
  readonly ofEach: number;
  /** Bytes of all relays. */
  readonly total: number;
  /** Bytes that a relay which has none gets also above the total. */
  readonly first?: number;
  /** Counts the bytes too, with others that are held for the relays. */
  readonly held?: { used: number };
}

/**
 * The bytes that texts of other relays take once they are read, of each relay and in all. Texts
 * without room wait, in rotation of the relays: one that fills its own room delays no other, and those
 * that together have all of it leave each of the others a small text at a time.
 */
export class TextRoom {
  readonly #options: TextRoomOptions;
  readonly #used = new Map<string, number>();
  /** By relay, in the order of their turns. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #sum = 0;

  constructor(options: TextRoomOptions) {
    this.#options = options;
  }

  /** Whether a text can ever have room. */
  fits(bytes: number): boolean {
    return bytes <= this.#ofEach;
  }

  /**
   * Waits for room and takes it; disposing of the result gives it back.
   *
   * @throws the signal's reason if it aborts first
   */
  async take(relayId: string, bytes: number, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(relayId) ?? new Set();
    const waiter = { bytes, grant: resolve };
    const leave = () => {
      waiting.delete(waiter);
      if (waiting.size === 0 && this.#waiting.get(relayId) === waiting)
        this.#waiting.delete(relayId);
      reject(signal?.reason);
      this.#grant();
    };
    waiting.add(waiter);
    this.#waiting.set(relayId, waiting);
    signal?.addEventListener('abort', leave, { once: true });
    this.#grant();
    await promise;
    signal?.removeEventListener('abort', leave);
    return { [Symbol.dispose]: () => this.#give(relayId, bytes) };
  }

  /** Half of all at the most, so that no relay has all of it. */
  get #ofEach(): number {
    const { ofEach, total } = this.#options;
    return Math.min(ofEach, Math.floor(total / 2));
  }

  #give(relayId: string, bytes: number): void {
    this.#count(relayId, -bytes);
    this.#grant();
  }

  #count(relayId: string, bytes: number): void {
    const used = (this.#used.get(relayId) ?? 0) + bytes;
    if (used > 0) this.#used.set(relayId, used);
    else this.#used.delete(relayId);
    this.#sum += bytes;
    if (this.#options.held !== undefined) this.#options.held.used += bytes;
  }

  #grant(): void {
    const { total, first: always = 0 } = this.#options;
    let isFull = false;
    // A relay that is added again comes last, and has its turn again.
    for (const [relayId, waiting] of this.#waiting) {
      const [first] = waiting;
      if (first === undefined) continue;
      const used = this.#used.get(relayId) ?? 0;
      if (used + first.bytes > this.#ofEach) continue;
      // What is large is not overtaken for ever.
      isFull ||= this.#sum + first.bytes > total;
      if (isFull && (used > 0 || first.bytes > always)) continue;
      waiting.delete(first);
      this.#waiting.delete(relayId);
      if (waiting.size > 0) this.#waiting.set(relayId, waiting);
      this.#count(relayId, first.bytes);
      first.grant();
    }
  }
}
