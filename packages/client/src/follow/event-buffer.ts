import type { AccountEvent } from '../events.ts';

/** Only this many of the newest events are buffered, so that an unread buffer stays small. */
const capacity = 10_000;

/**
 * Buffers events of reads outside of `sync` and `follow`: sending to a group, for example, reads
 * the group first. The next `sync`, or a running `follow`, takes the events from here.
 */
export class EventBuffer {
  #events: AccountEvent[] = [];
  #isWoken = false;
  #waiting = Promise.withResolvers<void>();

  /** Buffers events and wakes a running `follow`. */
  add(events: readonly AccountEvent[]): void {
    if (events.length === 0) return;
    this.#events = [...this.#events, ...events].slice(-capacity);
    this.#waiting.resolve();
  }

  /** Wakes a running `follow`: there may be a new host to follow. */
  wake(): void {
    this.#isWoken = true;
    this.#waiting.resolve();
  }

  /** Returns the buffered events and empties the buffer. */
  take(): AccountEvent[] {
    const events = this.#events;
    this.#events = [];
    this.#isWoken = false;
    this.#waiting = Promise.withResolvers();
    return events;
  }

  /** Whether events are buffered or `wake` was called. */
  get isSignaled(): boolean {
    return this.#isWoken || this.#events.length > 0;
  }

  /** Resolves when events are buffered or `wake` is called. */
  signaled(): Promise<void> {
    return this.#waiting.promise;
  }
}
