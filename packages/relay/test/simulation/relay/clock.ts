import type { Clock } from '../../../src/context.ts';
import type { Scheduler } from '../machine/scheduler.ts';

/** The clock of one machine: the simulation's time, and how far it is ahead of it. */
export class SimulatedClock implements Clock {
  readonly #scheduler: Scheduler;
  readonly #start: number;
  /** Seconds. */
  #ahead = 0;

  /** @param start Unix seconds at which the simulation began */
  constructor(scheduler: Scheduler, start: number) {
    this.#scheduler = scheduler;
    this.#start = start;
  }

  now(): number {
    return this.#start + Math.floor(this.#ahead + this.#scheduler.milliseconds / 1_000);
  }

  monotonic(): number {
    return this.#scheduler.milliseconds;
  }

  after(milliseconds: number, work: () => void): Disposable {
    return this.#scheduler.after(milliseconds, work);
  }

  /** Sets the clock forward. */
  step(seconds: number): void {
    this.#ahead += seconds;
  }
}
