import type { PeerClock } from './clock.ts';

/** Items that expire after the same time each, with one timer for all of them. */
export class Deadlines<T> {
  readonly #clock: PeerClock;
  readonly #time: number;
  readonly #expired: (item: T) => void;
  /** In the order of their deadlines. */
  readonly #items = new Map<T, number>();
  #timer: Disposable | undefined;

  /** @param time milliseconds */
  constructor(clock: PeerClock, time: number, expired: (item: T) => void) {
    this.#clock = clock;
    this.#time = time;
    this.#expired = expired;
  }

  get size(): number {
    return this.#items.size;
  }

  add(item: T): void {
    this.#items.set(item, this.#clock.monotonic() + this.#time);
    this.#timer ??= this.#clock.after(this.#time, () => this.#expire());
  }

  delete(item: T): boolean {
    return this.#items.delete(item);
  }

  clear(): void {
    this.#items.clear();
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #expire(): void {
    const now = this.#clock.monotonic();
    for (const [item, deadline] of this.#items) {
      if (deadline > now) break;
      this.#items.delete(item);
      this.#expired(item);
    }
    // Items added by `expired` come after all others.
    const [next] = this.#items.values();
    this.#timer =
      next === undefined ? undefined : this.#clock.after(next - now, () => this.#expire());
  }
}

/**
 * Runs work with a signal that aborts after a time, or with the given one.
 *
 * @param reason of the abort when the time has passed
 */
export async function withDeadline<T>(
  options: { clock: PeerClock; time: number; signal: AbortSignal; reason: Error },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock, time, signal, reason } = options;
  signal.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const timer = clock.after(time, () => controller.abort(reason));
  try {
    return await rejectOnAbort(controller.signal, work(controller.signal));
  } finally {
    timer[Symbol.dispose]();
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Settles like the work, or rejects with the signal's reason when it aborts first. The work goes on
 * then; its failure is not reported any more.
 *
 * @example
 * const work = crypto.subtle.digest('SHA-256', new Uint8Array(8));
 * const digest = await rejectOnAbort(AbortSignal.timeout(1_000), work);
 */
export function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
