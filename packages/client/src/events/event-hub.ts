/** The readers of one client: each has a cursor of its own on the event log of the store. */
import { systemClock } from '../environment.ts';
import type { AccountEvent } from '../events.ts';
import type { Store } from '../store/index.ts';
import { Mutex } from '../store/mutex.ts';
import {
  capacity,
  eventMarks,
  finishedCapacity,
  lastConnection,
  markFinished,
  readEventsAfter,
} from './event-log.ts';

/** Events read at once. */
const batchSize = 100;

/**
 * Milliseconds after which a finished event is stored as such while its batch goes on. By the clock
 * of the machine: this pause is not about relays, and never long.
 */
const markDelay = 100;

export class EventHub {
  readonly #store: Store;
  /** The highest event that a reader of this client has finished with, and the highest stored. */
  #finished = 0;
  #stored = 0;
  #delay: Promise<void> | undefined;
  readonly #closed = new AbortController();
  readonly #marking = new Mutex();
  readonly #draining = new Mutex();
  #drainCursor: number | undefined;
  #drained: AccountEvent[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Yields events from the first one that no reader has finished with, until the signal aborts or
   * `ended` settles. An event is finished when the next one is asked for.
   *
   * @throws what `ended` rejects with, after the last event
   */
  async *read(signal: AbortSignal, ended: Promise<void>): AsyncGenerator<AccountEvent> {
    let isEnded = false;
    const end = ended.finally(() => {
      isEnded = true;
    });
    end.catch(() => undefined);
    const changes = new Changes(this.#store);
    const stop = Promise.withResolvers<void>();
    const abort = () => stop.resolve();
    signal.addEventListener('abort', abort);
    try {
      let cursor = await this.#begin();
      // Another program may be connected already.
      const connection = await this.#store.read(lastConnection);
      if (connection !== undefined && connection.number <= cursor) yield connection.event;
      while (!signal.aborted) {
        const isLast = isEnded;
        const changed = changes.next();
        const page = await this.#store.read((tx) => readEventsAfter(tx, cursor, batchSize));
        if (page.isBehind) yield { kind: 'events-missed' };
        for (const { number, event } of page.events) {
          if (signal.aborted) return;
          yield event;
          this.#finish(number);
        }
        cursor = page.through;
        this.#finish(cursor);
        if (page.hasMore) continue;
        await this.flush();
        if (isLast) return await end;
        await Promise.race([changed, end.catch(() => undefined), stop.promise]);
      }
    } finally {
      signal.removeEventListener('abort', abort);
      changes[Symbol.dispose]();
      await this.flush();
    }
  }

  /** Reads what was recorded since the last call, for {@link take}. */
  async drain(): Promise<void> {
    await this.#draining.run(async () => {
      this.#drainCursor ??= await this.#begin();
      for (let hasMore = true; hasMore; ) {
        const after: number = this.#drainCursor;
        const page = await this.#store.read((tx) => readEventsAfter(tx, after, batchSize));
        if (page.isBehind) this.#drained.push({ kind: 'events-missed' });
        this.#drained.push(...page.events.map(({ event }) => event));
        this.#drainCursor = page.through;
        ({ hasMore } = page);
        if (this.#drained.length > capacity) {
          this.#drained = [{ kind: 'events-missed' }, ...this.#drained.slice(-finishedCapacity)];
        }
      }
    });
  }

  /** Returns the drained events, and stores that they are finished. */
  async take(): Promise<AccountEvent[]> {
    await this.drain();
    this.#finish(this.#drainCursor ?? 0);
    await this.flush();
    return this.#drained.splice(0);
  }

  /** Returns the drained events of one kind; the others stay. */
  async takeIf<E extends AccountEvent>(isWanted: (event: AccountEvent) => event is E) {
    await this.drain();
    const found: E[] = [];
    this.#drained = this.#drained.filter((event) => !(isWanted(event) && found.push(event)));
    return found;
  }

  /** Stores what the readers have finished with. */
  async flush(): Promise<void> {
    await this.#marking.run(async () => {
      const finished = this.#finished;
      if (finished <= this.#stored) return;
      await this.#store.write((tx) => markFinished(tx, finished));
      this.#stored = finished;
    });
  }

  /** Stores what was finished, and ends timers. A store that fails leaves it to be read again. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.flush().catch(() => undefined);
  }

  async #begin(): Promise<number> {
    await this.flush();
    return (await this.#store.read(eventMarks)).finished;
  }

  #finish(number: number): void {
    this.#finished = Math.max(this.#finished, number);
    if (this.#finished <= this.#stored) return;
    this.#delay ??= systemClock
      .sleep(markDelay, this.#closed.signal)
      .then(() => this.flush())
      .catch(() => undefined)
      .finally(() => {
        this.#delay = undefined;
      });
  }
}

/** Notices commits of a store. */
class Changes implements Disposable {
  readonly #watch: Disposable | undefined;
  #next = Promise.withResolvers<void>();

  constructor(store: Store) {
    this.#watch = store.watch?.(() => this.#next.resolve());
  }

  /** Returns a promise that resolves after the next commit. */
  next(): Promise<void> {
    this.#next = Promise.withResolvers();
    return this.#next.promise;
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }
}
