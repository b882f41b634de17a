import { systemClock } from '../clock.ts';
import type { Clock } from '../context.ts';

/** A clock that can be moved, forwards and backwards. */
export interface MovableClock extends Clock {
  advance(seconds: number): void;
}

/** Largest distance from the machine's clock, seconds: about a hundred years. */
const maxOffset = 3_155_760_000;

/** The machine's clock, moved by an offset. Timers and intervals are those of the machine. */
export class OffsetClock implements MovableClock {
  #offset = 0;

  /** Seconds ahead of the machine's clock. */
  get offset(): number {
    return this.#offset;
  }

  now(): number {
    return systemClock.now() + this.#offset;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  after(milliseconds: number, work: () => void): Disposable {
    return systemClock.after(milliseconds, work);
  }

  /** @throws RangeError if the clock would differ from the machine's by over a hundred years */
  advance(seconds: number): void {
    const offset = this.#offset + seconds;
    if (!Number.isSafeInteger(offset) || Math.abs(offset) > maxOffset) {
      throw new RangeError('the clock can be moved by up to 100 years: give fewer seconds');
    }
    this.#offset = offset;
  }
}
