import type { Clock } from '../../src/index.ts';

/** A client's clock that stands still until a test moves it; it counts the waits that began. */
export class StillClock implements Clock {
  #now: number;
  readonly #timers = new Set<{ readonly at: number; readonly fire: () => void }>();

  constructor(now: number) {
    this.#now = now;
  }

  milliseconds(): number {
    return this.#now;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (milliseconds <= 0) {
        resolve();
        return;
      }
      const timer = { at: this.#now + milliseconds, fire: () => {} };
      const end = () => {
        this.#timers.delete(timer);
        signal?.removeEventListener('abort', stop);
      };
      const stop = () => {
        end();
        reject(signal?.reason);
      };
      timer.fire = () => {
        end();
        resolve();
      };
      signal?.addEventListener('abort', stop, { once: true });
      this.#timers.add(timer);
    });
  }

  /** Milliseconds until each wait ends, shortest first. */
  get waits(): number[] {
    return [...this.#timers].map(({ at }) => at - this.#now).sort((a, b) => a - b);
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at <= this.#now) timer.fire();
    }
  }
}
