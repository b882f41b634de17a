/** The readers of one client: each has a cursor of its own on the event log of the store. */
import '../dispose-symbols.ts';
import { systemClock } from '../environment.ts';
import type { AccountEvent } from '../events.ts';
import type { Store } from '../store/index.ts';
import { Mutex } from '../store/mutex.ts';
import {
  beginReader,
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
  /** The highest event that each named reader has finished with, until it is stored. */
  readonly #named = new Map<string, number>();
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
   * @param reader a name under which it is stored what this reader has finished with
   * @throws what `ended` rejects with, after the last event; ClientError `invalid_input`
   */
  async *read(
    signal: AbortSignal,
    ended: Promise<void>,
    reader?: string,
  ): AsyncGenerator<AccountEvent> {
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
      const begun = await this.#begin(reader);
      let { cursor } = begun;
      const { head = cursor } = begun;
      // Another program may be connected already.
      const connection = await this.#store.read(lastConnection);
      if (connection !== undefined && connection.number <= head) yield connection.event;
      while (!signal.aborted) {
        const isLast = isEnded;
        const changed = changes.next();
        const page = await this.#store.read((tx) => readEventsAfter(tx, cursor, batchSize));
        if (page.isBehind) yield { kind: 'events-missed' };
        for (const { number, event } of page.events) {
          if (signal.aborted) return;
          // What a connection was before is no news to a named reader.
          const isPast = event.kind === 'connection' && number <= head;
          if (!isPast && !begun.taken?.has(number)) yield event;
          this.#finish(number, reader);
        }
        if (page.through > cursor) this.#finish(page.through, reader);
        cursor = page.through;
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
        this.#drained.push(...page.events.filter(({ number }) => !taken?.has(number)));
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
      const named = [...this.#named];
      if (finished <= this.#stored && named.length === 0) return;
      // After a failed write, the next event of a named reader is stored; those before may come again.
      this.#named.clear();
      await this.#store.write((tx) => markFinished(tx, finished, named));
      this.#stored = finished;
    });
  }

  /** Stores what was finished, and ends timers. A store that fails leaves it to be read again. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.flush().catch(() => undefined);
  }

  async #begin(reader?: string): Promise<ReaderStart> {
    await this.flush();
    if (reader !== undefined) return await this.#store.write((tx) => beginReader(tx, reader));
    return await this.#store.read(async (tx) => ({
      cursor: (await eventMarks(tx)).finished,
      taken: await takenEvents(tx),
    }));
  }

  #finish(number: number, reader?: string): void {
    this.#finished = Math.max(this.#finished, number);
    if (reader !== undefined) this.#named.set(reader, number);
    else if (this.#finished <= this.#stored) return;
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
  /** The newest event, for a named reader. */
  readonly head?: number;
  /** Events after the cursor that another reader has finished with; not for a named reader. */
  readonly taken?: ReadonlySet<number>;
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
