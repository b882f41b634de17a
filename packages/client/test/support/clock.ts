import type { Clock } from '../../src/index.ts';

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

/**
 * The machine's clock, plus what a test adds to it: time passes by itself, and in leaps. Serves
 * clients and the relay, so that both leap together.
 */
export class LeapingClock implements Clock {
  #ahead = 0;
  readonly #timers = new Set<Timer>();

  milliseconds(): number {
    return Date.now() + this.#ahead;
  }

  /** Unix seconds, for the relay. */
  now(): number {
    return Math.floor(this.milliseconds() / 1_000);
  }

  /** Milliseconds that never run backwards, for the relay. */
  monotonic(): number {
    return performance.now() + this.#ahead;
  }

  after(milliseconds: number, work: () => void): Disposable {
    const at = this.milliseconds() + milliseconds;
    const end = () => {
      clearTimeout(handle);
      this.#timers.delete(timer);
    };
    const fire = () => {
      end();
      work();
    };
    const timer: Timer = { at, fire };
    const handle = setTimeout(fire, Math.min(milliseconds, 0x7fff_ffff));
    this.#timers.add(timer);
    return { [Symbol.dispose]: end };
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const stop = () => {
        timer[Symbol.dispose]();
        reject(signal?.reason);
      };
      const timer = this.after(Math.max(milliseconds, 0), () => {
        signal?.removeEventListener('abort', stop);
        resolve();
      });
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  /** Leaps ahead; what came due meanwhile happens. */
  advance(seconds: number): void {
    this.#ahead += seconds * 1_000;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at <= this.milliseconds()) timer.fire();
    }
  }
}
