import type { AccountEvent } from '../events.ts';

/** Of so many the newest are kept: a program that never asks must not pay for it. */
const kept = 10_000;

/**
 * Events that were found on the way: sending to a group reads it first, and what that read brings
 * is in the store then, but nobody was told. Whoever follows the account, or synchronizes next,
 * takes it from here.
 */
export class EventBuffer {
  #events: AccountEvent[] = [];
  #isWoken = false;
  #waiting = Promise.withResolvers<void>();

  add(events: readonly AccountEvent[]): void {
    if (events.length === 0) return;
    this.#events = [...this.#events, ...events].slice(-kept);
    this.#waiting.resolve();
  }

  /** Asks whoever follows to look at what is kept: there may be more to follow than before. */
  wake(): void {
    this.#isWoken = true;
    this.#waiting.resolve();
  }

  take(): AccountEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#isWoken = false;
    this.#waiting = Promise.withResolvers();
    return events;
  }

  /** Whether there is something to take, or somebody asked to look around. */
  get isSignaled(): boolean {
    return this.#isWoken || this.#events.length > 0;
  }

  /** Resolves as soon as there is something to take. */
  signaled(): Promise<void> {
    return this.#waiting.promise;
  }
}
