import { nextTurn, turnMilliseconds } from '../../event-loop.ts';
import type { StorageFaults } from '../types.ts';
import { unavailable } from '../unavailable.ts';
import type { SqliteConnection } from './connection.ts';
import { failureKind, type Outage } from './failures.ts';
import type { Generation } from './generation.ts';
import { whileLocked } from './lock-wait.ts';
import { SqliteTransaction } from './transaction.ts';

/** Limits of one batch: number of writes, and milliseconds before it commits. */
const batchSize = 256;
const batchMilliseconds = 20;
/** Limit of waiting writes. More would only be answered too late. */
const maxWaiting = 20_000;

interface Waiting {
  /** Runs inside its own savepoint. */
  readonly work: (tx: SqliteTransaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The one writer, with group commit: waiting writes share one transaction, with a savepoint each,
 * and are answered after its one flush to disk. Load makes it more efficient, not less durable.
 */
export class SqliteWriter {
  readonly #connection: SqliteConnection;
  readonly #faults: StorageFaults;
  readonly #outage: Outage;
  readonly #lockTimeout: number;
  readonly #generation: Generation | undefined;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  /** @param parts.lockTimeout milliseconds a write waits for a lock of another process */
  constructor(
    connection: SqliteConnection,
    parts: {
      readonly faults: StorageFaults;
      readonly outage: Outage;
      readonly lockTimeout: number;
      readonly generation?: Generation | undefined;
    },
  ) {
    this.#connection = connection;
    this.#faults = parts.faults;
    this.#outage = parts.outage;
    this.#lockTimeout = parts.lockTimeout;
    this.#generation = parts.generation;
  }

  write<T>(work: (tx: SqliteTransaction) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('storage is closed'));
    if (this.#waiting.length >= maxWaiting) {
      return Promise.reject(unavailable('too many writes wait: try again later'));
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject });
    this.#faults.reach?.('queued');
    this.#running ??= this.#drain();
    return promise;
  }

  /** Commits the waiting writes and refuses new ones. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Every write of this turn of the event loop joins the batch.
      await nextTurn();
      await this.#batch();
    }
    this.#running = undefined;
  }

  /** Runs one transaction. Callers are answered only after COMMIT. */
  async #batch(): Promise<void> {
    const answers: (() => void)[] = [];
    const batch: Waiting[] = [];
    try {
      await whileLocked(() => this.#connection.run('BEGIN IMMEDIATE', []), this.#lockTimeout);
      this.#faults.reach?.('begun');
      for await (const next of this.#arriving()) {
        batch.push(next);
        answers.push(await this.#savepoint(next));
      }
      this.#faults.beforeCommit?.();
      this.#generation?.count(this.#connection);
      this.#faults.reach?.('commit');
      this.#connection.run('COMMIT', []);
      this.#faults.reach?.('committed');
      this.#generation?.committed();
    } catch (error) {
      this.#abandon(batch, this.#outage.errorOf(error));
      return;
    }
    this.#outage.end();
    this.#faults.reach?.('answer');
    for (const answer of answers) answer();
  }

  /**
   * Takes the writes of a batch, also those that arrive meanwhile, until a turn of the event loop has
   * brought none: then as many as there are share its flush. Other work runs after each millisecond.
   */
  async *#arriving(): AsyncGenerator<Waiting, void> {
    const started = performance.now();
    let turn = started;
    let hasWaited = false;
    for (let taken = 0; taken < batchSize; ) {
      const now = performance.now();
      if (now - started >= batchMilliseconds) return;
      const isEmpty = this.#waiting.length === 0;
      if (isEmpty && hasWaited) return;
      hasWaited = isEmpty;
      if (isEmpty || now - turn >= turnMilliseconds) {
        await nextTurn();
        turn = performance.now();
      } else {
        taken += 1;
        yield this.#waiting.shift() as Waiting;
      }
    }
  }

  /** Rolls the batch back and rejects all its writes. */
  #abandon(batch: readonly Waiting[], error: unknown): void {
    // If the transaction could not begin, reject all waiting writes; otherwise the batch would be
    // retried for ever.
    const failed = batch.length > 0 ? batch : this.#waiting.splice(0);
    try {
      if (this.#connection.isInTransaction) this.#connection.run('ROLLBACK', []);
    } catch {
      // The next batch then fails to begin, and tries to roll back again.
    }
    for (const { reject } of failed) reject(error);
  }

  /**
   * Runs one write in a savepoint.
   * @returns a function that answers the caller, to be called when the batch is durable
   * @throws if the transaction itself is lost, which fails the batch
   */
  async #savepoint(waiting: Waiting): Promise<() => void> {
    this.#connection.run('SAVEPOINT work', []);
    const tx = new SqliteTransaction(this.#connection, this.#faults);
    let answer: () => void;
    try {
      const value = await withoutWaiting(tx, waiting.work(tx));
      if (tx.failure !== undefined) throw new Error('a write continued after a failed statement');
      this.#connection.run('RELEASE work', []);
      answer = () => waiting.resolve(value);
    } catch (error) {
      // SQLite undoes the whole transaction by itself when the disk is full or broken.
      if (!this.#connection.isInTransaction) throw tx.failure ?? error;
      this.#connection.run('ROLLBACK TO work', []);
      this.#connection.run('RELEASE work', []);
      const isCause = failureKind(tx.failure) !== 'refused';
      const reason = this.#outage.errorOf(isCause ? tx.failure : error);
      answer = () => waiting.reject(reason);
    } finally {
      tx.end();
    }
    return answer;
  }
}

/**
 * Rejects if a write awaits anything but its transaction, which answers within the same turn of the
 * event loop unless it pauses: waiting for something else would block every other write.
 */
async function withoutWaiting<T>(tx: SqliteTransaction, promise: Promise<T>): Promise<T> {
  const { promise: waited, reject } = Promise.withResolvers<never>();
  const check = () => {
    if (tx.isPaused) turn = setImmediate(check);
    else reject(new Error('a write awaited more than its transaction'));
  };
  let turn = setImmediate(check);
  try {
    return await Promise.race([promise, waited]);
  } finally {
    clearImmediate(turn);
  }
}
