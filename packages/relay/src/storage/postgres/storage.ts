/** The engine for several processes: a PostgreSQL database that all of them use. */
import type {
  AggregateKey,
  AppendKind,
  DatabaseSpace,
  Reader,
  Storage,
  StorageFaults,
  WriteListener,
  WriteOptions,
  Writer,
} from '../types.ts';
import { unavailable } from '../unavailable.ts';
import { WriteListeners } from '../write-listeners.ts';
import { AggregateQueue } from './aggregate-queue.ts';
import { AppendQueue, type BatchWork } from './append-queue.ts';
import { commit } from './commit.ts';
import { commitsTable } from './commits.ts';
import { type Lease, PostgresConnections, rollBack } from './connections.ts';
import { ConnectionsBusy, cureOf, describeFailure, failureKind } from './errors.ts';
import { noObserver, type PostgresObserver } from './observer.ts';
import { CommitOutcomes } from './outcomes.ts';
import { type LockMode, ProcessLock } from './process-lock.ts';
import { Retries } from './retries.ts';
import { ServerWatch } from './server-watch.ts';
import { readSpace } from './space.ts';
import {
  beginBatchSql,
  beginReadSql,
  beginTurnSql,
  beginWriteSql,
  PostgresStatements,
} from './sql.ts';
import { defaultTimeouts, type PostgresTimeouts } from './timeouts.ts';
import { PostgresTransaction } from './transaction.ts';

/** Limit of calls that run or wait. More would only be answered too late. */
const maxWaiting = 20_000;

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  readonly url: string;
  /** Maximum number of connections. */
  readonly connections: number;
  readonly lockMode: LockMode;
  readonly faults?: StorageFaults | undefined;
  readonly observer?: PostgresObserver | undefined;
  readonly timeouts?: Partial<PostgresTimeouts> | undefined;
  /** Limit of calls that run or wait. */
  readonly maxWaiting?: number | undefined;
}

/**
 * Opens the database of the URL.
 *
 * Durable means what the server guarantees; `synchronous_commit` is never `off`.
 *
 * @throws Error with a sentence for operators, if the database cannot be reached, is too old or not
 *   in UTF-8, or another process holds a lock that excludes this one
 */
export async function openPostgres(options: PostgresOptions): Promise<PostgresStorage> {
  const observer = options.observer ?? noObserver;
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const lock = new ProcessLock(options.url, {
    lockMode: options.lockMode,
    timeouts,
    onLost: (error) => observer.lockLost(error),
  });
  try {
    await lock.acquire();
  } catch (error) {
    const cure = cureOf(error);
    const words = `${describeFailure(error)}${cure === undefined ? '' : `; ${cure}`}`;
    throw new Error(`cannot use ${serverOf(options.url)}: ${words}`, { cause: error });
  }
  const storage = new PostgresStorage(options, { lock, observer, timeouts });
  try {
    await storage.read((tx) => tx.get('SELECT 1 AS one'));
  } catch (error) {
    await storage[Symbol.asyncDispose]();
    throw error;
  }
  return storage;
}

/** Describes the server and database, without user and password. */
function serverOf(url: string): string {
  if (!URL.canParse(url)) return 'PostgreSQL';
  const { host, pathname } = new URL(url);
  return `PostgreSQL at ${host}${pathname}`;
}

export class PostgresStorage implements Storage {
  readonly catalogueSql = `SELECT c.relname::text AS table_name, a.attname::text AS column_name,
      COALESCE(array_position(i.indkey::int2[], a.attnum), -1) + 1 AS key_position
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
      AND c.relname <> '${commitsTable}'
    ORDER BY c.relname, a.attnum`;
  readonly #connections: PostgresConnections;
  /** One connection for appends, so that they never wait for those of calls. */
  readonly #appending: PostgresConnections;
  readonly #appends: AppendQueue;
  readonly #lock: ProcessLock;
  readonly #observer: PostgresObserver;
  readonly #faults: StorageFaults;
  readonly #statements = new PostgresStatements();
  readonly #queue = new AggregateQueue();
  readonly #timeouts: PostgresTimeouts;
  readonly #retries: Retries;
  readonly #outcomes: CommitOutcomes;
  readonly #watch: ServerWatch;
  readonly #listeners = new WriteListeners();
  #isClosed = false;

  constructor(
    options: PostgresOptions,
    parts: {
      readonly lock: ProcessLock;
      readonly observer: PostgresObserver;
      readonly timeouts: PostgresTimeouts;
    },
  ) {
    const { url, lockMode, faults = {} } = options;
    const { lock, observer, timeouts } = parts;
    const pool = { lockMode, timeouts };
    this.#connections = new PostgresConnections(url, { limit: options.connections, ...pool });
    this.#appending = new PostgresConnections(url, { limit: 1, ...pool });
    this.#lock = lock;
    this.#observer = observer;
    this.#faults = faults;
    this.#timeouts = timeouts;
    const isSilent = () => this.#watch.isSilent;
    this.#retries = new Retries({
      ...{ lock, observer, isSilent, timeout: timeouts.call },
      maxWaiting: options.maxWaiting ?? maxWaiting,
    });
    this.#outcomes = new CommitOutcomes({
      ...{ observer, timeouts, isSilent, connections: this.#connections },
    });
    this.#appends = new AppendQueue({
      atOnce: (work) => this.#writeBatch(beginBatchSql, work),
      // A process that has the database for itself need not wait for others.
      inTurn:
        lockMode === 'together'
          ? (work) => this.#writeBatch(beginTurnSql(timeouts), work)
          : undefined,
      changed: (aggregate) => this.#listeners.changedElsewhere([aggregate]),
    });
    this.#watch = new ServerWatch({
      timeouts,
      probe: () => lock.probe(),
      breakAll: () => {
        lock.break();
        this.#connections.breakAll();
        this.#appending.breakAll();
      },
      reachable: (isReachable) => observer.reachable(isReachable),
    });
    // A process that is cut off serves again as soon as the server does.
    lock.onHeldAgain(() => this.#watch.wake());
  }

  /** Whether this process holds its lock on the database. */
  get hasLock(): boolean {
    return this.#lock.isHeld;
  }

  read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    return this.#retries.run(() => this.#readOnce(work));
  }

  longRead<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    let hasBegun = false;
    return this.#retries.run(() =>
      this.#readOnce((tx) => {
        if (hasBegun) throw unavailable('the connection to storage was lost: try again');
        hasBegun = true;
        return work(tx);
      }),
    );
  }

  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    { keepsFacts = false }: WriteOptions = {},
  ): Promise<T> {
    const keys = typeof aggregates === 'string' ? [aggregates] : aggregates;
    if (keepsFacts) return this.#writeWith(keys, work);
    return this.#listeners.around(keys, work, (told) => this.#writeWith(keys, told));
  }

  appends({ batch }: Pick<AppendKind<never, unknown>, 'batch'>): boolean {
    return batch !== undefined;
  }

  async append<Input, Output>(
    kind: AppendKind<Input, Output>,
    input: Input,
  ): Promise<Output | undefined> {
    if (!this.appends(kind)) return undefined;
    this.#faults.reach?.('queued');
    return await this.#retries.run((until) => this.#appends.add(kind, input, until));
  }

  watch(listener: WriteListener): void {
    this.#listeners.add(listener);
  }

  define<T>(work: (tx: Writer) => Promise<T>): Promise<T> {
    return this.#writeWith(['relay'], work, this.#timeouts.definition);
  }

  #writeWith<T>(
    keys: readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    timeout?: number,
  ): Promise<T> {
    const begin = beginWriteSql(keys, timeout);
    this.#faults.reach?.('queued');
    return this.#retries.run((until) =>
      this.#queue.run(keys, () => {
        // Earlier writes of the queue may have waited up to their own timeouts.
        if (performance.now() < until) return this.#writeOnce({ keys, begin, timeout }, work);
        throw new ConnectionsBusy('too many writes of one aggregate');
      }),
    );
  }

  space(): Promise<DatabaseSpace> {
    return this.read(readSpace);
  }

  /** The server's autovacuum does it. */
  reclaim(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#retries[Symbol.asyncDispose]();
    await this.#outcomes[Symbol.asyncDispose]();
    await this.#watch[Symbol.asyncDispose]();
    await this.#connections.close();
    await this.#appending.close();
    await this.#lock.release();
  }

  async #readOnce<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    const lease = await this.#connections.acquire();
    const tx = this.#transaction(lease, beginReadSql);
    try {
      const value = await work(tx);
      await tx.begun;
      rollBack(lease);
      return value;
    } catch (error) {
      throw rollBackAfter(lease, tx, error);
    } finally {
      tx.end();
    }
  }

  /** Begins before the work is known: it may be chosen when the transaction has begun. */
  async #writeBatch(begin: string, work: BatchWork): Promise<void> {
    const plan: WritePlan = {
      begin,
      isBatch: true,
      get keys() {
        return work.keys;
      },
    };
    await this.#writeOnce(plan, async (tx) => {
      // What arrives until then joins the batch.
      if (begin !== beginBatchSql) await tx.begun;
      await work.write(tx);
    });
  }

  async #writeOnce<T>(plan: WritePlan, work: (tx: PostgresTransaction) => Promise<T>): Promise<T> {
    const { begin, timeout, isBatch = false } = plan;
    const lease = await (isBatch ? this.#appending : this.#connections).acquire();
    const tx = this.#transaction(lease, begin, timeout);
    let value: T;
    try {
      this.#faults.reach?.('begun');
      value = await work(tx);
      await tx.begun;
      if (tx.failure !== undefined) throw new Error('a write continued after a failed statement');
      this.#faults.beforeCommit?.();
      this.#faults.reach?.('commit');
    } catch (error) {
      // A refused repeat.
      if (tx.isReading && tx.failure === undefined && !isBatch)
        this.#observer.unannounced(plan.keys);
      throw rollBackAfter(lease, tx, error);
    } finally {
      tx.end();
    }
    const unanswered = await commit(lease, tx);
    this.#faults.reach?.('committed');
    if (unanswered !== undefined) {
      this.#retries.markUnreachable(unanswered.cause);
      if (!(await this.#outcomes.wasCommitted(plan.keys, unanswered))) throw unanswered.cause;
    }
    if (tx.isReading && !isBatch) this.#observer.unannounced(plan.keys);
    this.#faults.reach?.('answer');
    return value;
  }

  #transaction({ client }: Lease, begin: string, timeout?: number): PostgresTransaction {
    const statements = this.#statements;
    const answerTimeout = timeout && timeout + this.#timeouts.connect;
    return new PostgresTransaction(client, {
      begin,
      statements,
      faults: this.#faults,
      answerTimeout,
    });
  }
}

/** What a write locks, once its work is known, and the SQL that begins it. */
interface WritePlan {
  readonly keys: readonly AggregateKey[];
  readonly begin: string;
  /** Milliseconds for each statement, if they may take long. */
  readonly timeout?: number | undefined;
  /** Whether it is a batch of appends: of those that are declined, the general way reports repeats. */
  readonly isBatch?: boolean;
}

/**
 * Rolls back a failed transaction and releases its connection.
 * @returns what to throw: the database's failure if a retry may help, otherwise `error`
 */
function rollBackAfter(lease: Lease, tx: PostgresTransaction, error: unknown): unknown {
  const reason = failureKind(tx.failure) === 'refused' ? error : tx.failure;
  if (failureKind(reason) === 'lost') lease.release(reason);
  else rollBack(lease);
  return reason;
}
