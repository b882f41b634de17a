import { nextTurn, TurnTime } from '../../event-loop.ts';
import { Queue } from '../../queue.ts';
import type { StorageFaults, SyncWriter, Upcoming, Writer } from '../types.ts';
import { unavailable } from '../unavailable.ts';
import type { WriteListeners } from '../write-listeners.ts';
import { Batch, type WaitingWrite } from './batch.ts';
import type { Checkpoints } from './checkpoints.ts';
import type { SqliteConnection } from './connection.ts';
import type { DurableSnapshots } from './durable-snapshots.ts';
import type { Outage } from './failures.ts';
import type { Generation } from './generation.ts';
import { whileLocked } from './lock-wait.ts';
import type { WalFlush } from './wal-flush.ts';

/** Limits of one batch: number of writes, and milliseconds before it commits. */
const batchSize = 256;
const batchMilliseconds = 20;
/** Number of writes from which a batch stays open while signatures are being verified. */
const severalWrites = 8;
/**
 * Limit of commits that wait for the disk, with the answers to their writes. A batch stays open during
 * a flush, so more than two are unflushed only if the disk is slower than full batches.
 */
const maxUnflushed = 8;
/** Limit of waiting writes. More would only be answered too late. */
const maxWaiting = 20_000;

interface WriterParts {
  readonly faults: StorageFaults;
  readonly outage: Outage;
  readonly listeners: WriteListeners;
  /** Milliseconds a write waits for a lock of another process. */
  readonly lockTimeout: number;
  readonly generation?: Generation | undefined;
  /** Makes commits durable; absent if they are when COMMIT returns. */
  readonly flush?: WalFlush | undefined;
  /** For reads while a commit waits for its flush. */
  readonly snapshots?: DurableSnapshots | undefined;
  /** Copies the log; absent if SQLite does. */
  readonly checkpoints?: Checkpoints | undefined;
  readonly upcoming?: Upcoming | undefined;
}

/**
 * The one writer, with group commit: waiting writes share one transaction and are answered when it
 * is on disk. Load makes it more efficient, not less durable.
 */
export class SqliteWriter {
  readonly #connection: SqliteConnection;
  readonly #parts: WriterParts;
  readonly #waiting = new Queue<WaitingWrite>();
  #dataVersion: number;
  #running: Promise<void> | undefined;
  /** Called when a write arrives, while a batch waits for one. */
  #arrival: (() => void) | undefined;
  /** Promises whose end also wakes a batch that waits. */
  readonly #watched = new WeakSet<Promise<void>>();
  #closed = false;

  constructor(connection: SqliteConnection, parts: WriterParts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#dataVersion = dataVersionOf(connection);
  }

  write<T>(work: (tx: Writer) => Promise<T>): Promise<T> {
    return this.#enqueue((answer) => ({ kind: 'write', work, ...answer }));
  }

  /** Does a write that waits for nothing; writes and appends run in the order of their arrival. */
  append<T>(work: (tx: SyncWriter) => T): Promise<T> {
    return this.#enqueue((answer) => ({ kind: 'append', work, ...answer }));
  }

  /** Commits the waiting writes and refuses new ones; resolves when they are on disk. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    await this.#parts.flush?.idle();
  }

  #enqueue<T>(writeOf: (answer: Pick<WaitingWrite, 'resolve' | 'reject'>) => WaitingWrite) {
    if (this.#closed) return Promise.reject(new Error('storage is closed'));
    if (this.#waiting.size >= maxWaiting) {
      return Promise.reject(unavailable('too many writes wait: try again later'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push(writeOf({ resolve: resolve as (value: unknown) => void, reject }));
    this.#parts.faults.reach?.('queued');
    this.#arrival?.();
    this.#running ??= this.#drain();
    return promise;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.size > 0) {
      // Every write of this turn of the event loop joins the batch.
      await nextTurn();
      await this.#roomForCommit();
      await this.#parts.checkpoints?.beforeBatch();
      await this.#runBatch();
    }
    this.#running = undefined;
  }

  async #roomForCommit(): Promise<void> {
    const { flush } = this.#parts;
    if (flush === undefined) return;
    while (flush.unflushed >= maxUnflushed && !flush.hasFailed) await flush.underWay;
  }

  /** Runs one transaction. */
  async #runBatch(): Promise<void> {
    const { faults, outage, generation, flush, snapshots, checkpoints } = this.#parts;
    const batch = new Batch({ ...this.#parts, connection: this.#connection }, () => this.#begin());
    let number: number | undefined;
    try {
      await this.#begin();
      faults.reach?.('begun');
      await this.#fill(batch);
      faults.beforeCommit?.();
      if (batch.hasChanged) number = generation?.count(this.#connection);
      if (batch.hasChanged) snapshots?.beforeCommit();
      faults.reach?.('commit');
      this.#connection.run('COMMIT', []);
      faults.reach?.('committed');
    } catch (error) {
      this.#abandon(batch, outage.errorOf(error));
      return;
    }
    outage.end();
    if (batch.hasChanged) {
      flush?.committed();
      checkpoints?.committed();
    }
    void this.#answer(batch, number);
  }

  /** Answers the writes of a committed batch when it, and all that they may have seen, is on disk. */
  async #answer(batch: Batch, number: number | undefined): Promise<void> {
    const { faults, generation, flush } = this.#parts;
    const reached = flush?.reached();
    if (reached !== undefined) await reached;
    if (number !== undefined) generation?.reached(number);
    faults.reach?.('answer');
    batch.answer();
  }

  async #begin(): Promise<void> {
    const { lockTimeout, listeners, snapshots } = this.#parts;
    await whileLocked(() => this.#connection.run('BEGIN IMMEDIATE', []), lockTimeout);
    const version = dataVersionOf(this.#connection);
    if (version === this.#dataVersion) return;
    // A command of the operator has written.
    this.#dataVersion = version;
    snapshots?.drop();
    listeners.changed();
  }

  /**
   * Runs the waiting writes, also those that arrive meanwhile, until a turn of the event loop has
   * brought none and no flush is under way: a commit would only wait for the next one. With several
   * writes, a batch also stays open while others are about to come: the more of them commit together,
   * the fewer times a page of the database is written. Other work runs after each millisecond.
   */
  async #fill(batch: Batch): Promise<void> {
    const started = performance.now();
    const turn = new TurnTime();
    let hasWaited = false;
    while (batch.size < batchSize && performance.now() - started < batchMilliseconds) {
      const isEmpty = this.#waiting.size === 0;
      if (isEmpty && hasWaited) {
        const { flush, upcoming } = this.#parts;
        const flushed = flush?.underWay;
        const settled = batch.size < severalWrites ? undefined : upcoming?.();
        if (flushed !== undefined) await this.#arrivalOr(flushed);
        else if (settled === undefined) return;
        else await this.#arrivalOr(settled, started + batchMilliseconds - performance.now());
      }
      hasWaited = isEmpty;
      if (isEmpty || turn.isOver) {
        await turn.next();
      } else {
        const running = batch.run(this.#waiting.shift() as WaitingWrite);
        // Nothing waits between two appends.
        if (running !== undefined) await running;
      }
    }
  }

  /** Resolves when a write arrives, with the other promise, or after so many milliseconds. */
  async #arrivalOr(other: Promise<void>, milliseconds?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#arrival = resolve;
    // Once: it may last longer than many batches, and each reaction stays in memory until it settles.
    if (!this.#watched.has(other)) {
      this.#watched.add(other);
      const wake = () => this.#arrival?.();
      void other.then(wake, wake);
    }
    const timer =
      milliseconds === undefined ? undefined : setTimeout(resolve, Math.max(0, milliseconds));
    await promise;
    clearTimeout(timer);
    this.#arrival = undefined;
  }

  /** Rolls the batch back and rejects all its writes. */
  #abandon(batch: Batch, error: unknown): void {
    this.#parts.snapshots?.drop();
    try {
      if (this.#connection.isInTransaction) this.#connection.run('ROLLBACK', []);
    } catch {
      // The next batch then fails to begin, and tries to roll back again.
    }
    batch.reject(error);
    // If the transaction could not begin, reject all waiting writes; otherwise the batch would be
    // retried for ever.
    if (batch.size > 0) return;
    for (let { size } = this.#waiting; size > 0; size -= 1) this.#waiting.shift()?.reject(error);
  }
}

/** A number that changes when another connection has committed. */
function dataVersionOf(connection: SqliteConnection): number {
  const row = connection.get('PRAGMA data_version', []) as { data_version: number };
  return row.data_version;
}
