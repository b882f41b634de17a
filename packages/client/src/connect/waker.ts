/** Waking a client: the platform says that the network may be back (02 §12.9). */
import '../dispose-symbols.ts';
import type { Clock } from '../environment.ts';

/**
 * Registers a callback for the moments at which a connection is worth a try at once, and returns
 * what removes it.
 *
 * @example
 * import type { WakeSource } from '@posthouse/client';
 * const everyMinute: WakeSource = (wake) => {
 *   const timer = setInterval(wake, 60_000);
 *   return { [Symbol.dispose]: () => clearInterval(timer) };
 * };
 * account.follow({ signal: AbortSignal.timeout(600_000), wake: everyMinute });
 */
export type WakeSource = (wake: () => void) => Disposable;

/** Milliseconds between two wakes at least; wakes in between are one, at its end. */
const interval = 1_000;

/** Passes wakes on, at most one per second, to connections and to waits before a retry. */
export class Waker {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #last = Number.NEGATIVE_INFINITY;
  #isPlanned = false;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of wakes so far, for {@link Waker.sleep}. */
  get count(): number {
    return this.#count;
  }

  wake(): void {
    if (this.#isPlanned) return;
    const wait = Math.min(this.#last + interval - this.#clock.milliseconds(), interval);
    if (!(wait > 0)) {
      this.#notify();
      return;
    }
    this.#isPlanned = true;
    void this.#clock.sleep(wait).then(() => {
      this.#isPlanned = false;
      this.#notify();
    });
  }

  /** Calls a listener at each wake. */
  add(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  /**
   * Sleeps until the time is over or the client is woken. A wait that a relay asked for is not cut.
   *
   * @param options.since a {@link Waker.count}: after a later wake there is no sleep
   * @param options.hint seconds the relay asked for, if any
   * @throws the signal's reason
   */
  async sleep(
    milliseconds: number,
    {
      since,
      signal,
      hint = 0,
    }: { readonly since: number; readonly signal: AbortSignal; readonly hint?: number | undefined },
  ): Promise<void> {
    if (hint > 0) return await this.#clock.sleep(milliseconds, signal);
    if (this.#count !== since) return;
    const woken = new AbortController();
    const listener = this.add(() => woken.abort());
    try {
      await this.#clock.sleep(milliseconds, AbortSignal.any([signal, woken.signal]));
    } catch (error) {
      if (signal.aborted || !woken.signal.aborted) throw error;
    } finally {
      listener[Symbol.dispose]();
    }
  }

  #notify(): void {
    this.#last = this.#clock.milliseconds();
    this.#count += 1;
    for (const listener of [...this.#listeners]) listener();
  }
}
