import type { PeerClock } from '../../src/index.ts';

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements PeerClock {
  #now = 0;
  readonly #timers = new Set<Timer>();

  monotonic(): number {
    return this.#now;
  }

  after(milliseconds: number, work: () => void): Disposable {
    const timer = { at: this.#now + milliseconds, work };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => void this.#timers.delete(timer) };
  }

  /** Moves time and runs the timers that came due. */
  advance(milliseconds: number): void {
    this.#now += milliseconds;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.work();
    }
  }
}
