/** The readers of one client: each has a cursor of its own on the event log of the store. */
import '../dispose-symbols.ts';
import { systemClock } from '../environment.ts';
import type { AccountEvent } from '../events.ts';
import type { Store } from '../store/index.ts';
import { Mutex } from '../store/mutex.ts';
import {
  capacity,
  eventMarks,
  finishedCapacity,
  type LogPage,
  lastConnection,
  markFinished,
  markTaken,
  readEventsAfter,
  takenEvents,
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
  #drainStart: ReaderStart | undefined;
  #drainCursor: number | undefined;
  #drained: LoggedEvent[] = [];

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
      const begun = await this.#begin();
      let { cursor } = begun;
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
          if (!begun.taken.has(number)) yield event;
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
      this.#drainStart ??= await this.#begin();
      const { taken } = this.#drainStart;
      for (let hasMore = true; hasMore; ) {
        const after: number = this.#drainCursor ?? this.#drainStart.cursor;
        const page = await this.#store.read((tx) => readEventsAfter(tx, after, batchSize));
        if (page.isBehind) this.#drained.push(missedAt(after));
        this.#drained.push(...page.events.filter(({ number }) => !taken.has(number)));
        this.#drainCursor = page.through;
        ({ hasMore } = page);
        if (this.#drained.length > capacity) {
          const newest = this.#drained.slice(-finishedCapacity);
          this.#drained = [missedAt(newest[0]?.number ?? after), ...newest];
        }
      }
    });
  }

  /** Returns the drained events, and stores that they are finished. */
  async take(): Promise<AccountEvent[]> {
    await this.drain();
    this.#finish(this.#drainCursor ?? 0);
    await this.flush();
    return this.#drained.splice(0).map(({ event }) => event);
  }

  /** Returns the drained events of one kind, and stores that they are finished; the others stay. */
  async takeIf<E extends AccountEvent>(isWanted: (event: AccountEvent) => event is E) {
    await this.drain();
    const found: E[] = [];
    const numbers: number[] = [];
    this.#drained = this.#drained.filter(({ number, event }) => {
      if (!isWanted(event)) return true;
      found.push(event);
      numbers.push(number);
      return false;
    });
    const [left] = this.#drained;
    if (left === undefined) this.#finish(this.#drainCursor ?? 0);
    else if (numbers.length > 0) await this.#finishSome(numbers, left.number - 1);
    await this.flush();
    return found;
  }

  /** Stores that some events are finished, and all up to `through`. */
  async #finishSome(numbers: readonly number[], through: number): Promise<void> {
    this.#finish(through);
    await this.flush();
    await this.#store.write((tx) => markTaken(tx, numbers));
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

  async #begin(): Promise<ReaderStart> {
    await this.flush();
    return await this.#store.read(async (tx) => ({
      cursor: (await eventMarks(tx)).finished,
      taken: await takenEvents(tx),
    }));
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

/** Where a reader begins. */
interface ReaderStart {
  readonly cursor: number;
  /** Events after the cursor that another reader has finished with. */
  readonly taken: ReadonlySet<number>;
}

type LoggedEvent = LogPage['events'][number];

/** The event about events that were removed from the log before they could be read. */
function missedAt(number: number): LoggedEvent {
  return { number, event: { kind: 'events-missed' } };
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
