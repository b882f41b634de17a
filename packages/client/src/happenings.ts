import type { AccountEvent } from './events.ts';

/** Of so many the newest are kept: a program that never asks must not pay for it. */
const kept = 10_000;

/**
 * Events that were found on the way: sending to a group reads it first, and what that read brings
 * is in the store then, but nobody was told. Whoever follows the account, or synchronizes next,
 * takes it from here.
 */
export class Happenings {
  #events: AccountEvent[] = [];
  #waiting = Promise.withResolvers<void>();

  add(events: readonly AccountEvent[]): void {
    if (events.length === 0) return;
    this.#events = [...this.#events, ...events].slice(-kept);
    this.#waiting.resolve();
  }

  take(): AccountEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#waiting = Promise.withResolvers();
    return events;
  }

  get isWaiting(): boolean {
    return this.#events.length > 0;
  }

  /** Resolves as soon as there is something to take. */
  next(): Promise<void> {
    return this.#waiting.promise;
  }
}
