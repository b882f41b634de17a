import { ProtocolError } from '@posthouse/protocol';
import type { StorageFaults, Writer } from '../types.ts';
import type { SqliteConnection } from './connection.ts';
import { SqliteTransaction } from './transaction.ts';

/** Works in one commit, and how long a batch may hold the thread before it commits. */
const batchWorks = 256;
const batchMilliseconds = 20;
/** Writes that may wait. More would only be answered too late. */
const maxWaiting = 20_000;

interface Waiting {
  /** Runs the work in its savepoint and keeps what it returned or threw. */
  readonly work: (tx: Writer) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The one writer, with group commit: what waits is put into one transaction, a savepoint each, and
 * answered after the one flush to disk. Load makes it more efficient, not less durable.
 */
export class SqliteWriter {
  readonly #connection: SqliteConnection;
  readonly #faults: StorageFaults;
  readonly #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(connection: SqliteConnection, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  write<T>(work: (tx: Writer) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('storage is closed'));
    if (this.#waiting.length >= maxWaiting) {
      const overloaded = new ProtocolError('temporarily_unavailable', 'too many writes wait');
      return Promise.reject(overloaded);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push({ work, resolve: resolve as (value: unknown) => void, reject });
    this.#running ??= this.#drain();
    return promise;
  }

  /** Commits what waits, refuses what comes. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Everything that arrived in this turn of the event loop joins the batch.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#batch();
    }
    this.#running = undefined;
  }

  /** One transaction. Callers hear of success only after COMMIT. */
  async #batch(): Promise<void> {
    const answers: (() => void)[] = [];
    const taken: Waiting[] = [];
    try {
      this.#connection.run('BEGIN IMMEDIATE', []);
      const started = performance.now();
      while (taken.length < batchWorks && performance.now() - started < batchMilliseconds) {
        const next = this.#waiting.shift();
        if (next === undefined) break;
        taken.push(next);
        answers.push(await this.#savepoint(next));
      }
      this.#faults.beforeCommit?.();
      this.#connection.run('COMMIT', []);
    } catch (error) {
      this.#abandon(taken, error);
      return;
    }
    for (const answer of answers) answer();
  }

  /** Nothing of the batch is stored, and everyone in it hears so. */
  #abandon(taken: readonly Waiting[], error: unknown): void {
    // Where it could not even begin, all that wait bear the failure: otherwise it would be tried for
    // ever.
    const failed = taken.length > 0 ? taken : this.#waiting.splice(0);
    try {
      if (this.#connection.isInTransaction) this.#connection.run('ROLLBACK', []);
    } catch {
      // The next batch cannot begin then: it fails as this one did, and tries to roll back again.
    }
    for (const { reject } of failed) reject(error);
  }

  /**
   * Runs one work and says how to answer its caller once the batch is durable.
   * @throws when the transaction itself is lost, which fails the batch
   */
  async #savepoint(waiting: Waiting): Promise<() => void> {
    this.#connection.run('SAVEPOINT work', []);
    const tx = new SqliteTransaction(this.#connection, this.#faults);
    let answer: () => void;
    try {
      const value = await settledAtOnce(waiting.work(tx));
      if (tx.failure !== undefined) throw new Error('a work went on behind a failed statement');
      this.#connection.run('RELEASE work', []);
      answer = () => waiting.resolve(value);
    } catch (error) {
      // SQLite undoes the whole transaction by itself when the disk is full or broken.
      if (!this.#connection.isInTransaction) throw error;
      this.#connection.run('ROLLBACK TO work', []);
      this.#connection.run('RELEASE work', []);
      answer = () => waiting.reject(error);
    } finally {
      tx.end();
    }
    return answer;
  }
}

/**
 * Holds a work to its word: it awaits nothing but its transaction, which answers within the same
 * turn of the event loop. Whoever waits for something else would hold up every other writer.
 */
async function settledAtOnce<T>(promise: Promise<T>): Promise<T> {
  let turn: NodeJS.Immediate | undefined;
  const nextTurn = new Promise<never>((_, reject) => {
    turn = setImmediate(() => reject(new Error('a write awaited more than its transaction')));
  });
  try {
    return await Promise.race([promise, nextTurn]);
  } finally {
    clearImmediate(turn);
  }
}
