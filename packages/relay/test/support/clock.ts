import type { Clock } from '../../src/context.ts';

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #milliseconds: number;
  #elapsed = 0;
  readonly #timers = new Set<Timer>();

  /** @param start Unix seconds */
  constructor(start = 1_750_000_000) {
    this.#milliseconds = start * 1_000;
  }

  now(): number {
    return Math.floor(this.#milliseconds / 1_000);
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(milliseconds: number, work: () => void): Disposable {
    const timer = { at: this.#elapsed + milliseconds, work };
    this.#timers.add(timer);
    return { [Symbol.dispose]: () => void this.#timers.delete(timer) };
  }

  /** Moves time and runs the timers that came due. The clock can be set back, intervals cannot. */
  advance(seconds: number): void {
    this.#milliseconds += seconds * 1_000;
    this.#elapsed += Math.max(0, seconds) * 1_000;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.#elapsed || !this.#timers.delete(timer)) continue;
      timer.work();
    }
  }
}
