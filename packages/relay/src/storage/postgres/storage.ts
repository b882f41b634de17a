/** The engine for several processes: a PostgreSQL database that all of them use. */
import type {
  AggregateKey,
  AppendKind,
  Reader,
  Storage,
  StorageFaults,
  WriteListener,
  Writer,
} from '../types.ts';
import { unavailable } from '../unavailable.ts';
import { WriteListeners } from '../write-listeners.ts';
import { AggregateQueue } from './aggregate-queue.ts';
import { commit, type UnansweredCommit } from './commit.ts';
import { type CommitMark, commitsTable, isCommitted } from './commits.ts';
import { type Lease, PostgresConnections } from './connections.ts';
import { ConnectionsBusy, describeFailure, failureKind } from './errors.ts';
import { type LockMode, ProcessLock } from './process-lock.ts';
import { ServerWatch } from './server-watch.ts';
import { beginReadSql, beginWriteSql, PostgresStatements } from './sql.ts';
import { defaultTimeouts, type PostgresTimeouts } from './timeouts.ts';
import { PostgresTransaction } from './transaction.ts';
import { UnknownCommits } from './unknown-commits.ts';

/** Milliseconds before the first retry; doubled for each further one, up to the longest. */
const firstPause = 5;
const longestPause = 500;
/** Milliseconds between two queries for the outcome of a commit. */
const outcomePause = 100;
/** Limit of calls that run or wait. More would only be answered too late. */
const maxWaiting = 20_000;

/** Events of the engine that operators must see. */
export interface PostgresObserver {
  /** The server became unreachable; called once until {@link restored}. */
  lost(error: unknown): void;
  restored(): void;
  /** A write is retried after a conflict. */
  conflicted(): void;
  /** The outcome of a commit is unknown; its caller gets `temporarily_unavailable`. */
  commitUnknown(error: unknown): void;
  /** Another process took a lock on the database that excludes this one. */
  lockLost(error: unknown): void;
  /**
   * These aggregates may have changed without notices: a write found nothing to change, so that it
   * may repeat one whose process died before it published; or a commit succeeded whose caller was
   * told that its outcome is unknown. `any`: so may all aggregates.
   */
  unannounced(aggregates: readonly AggregateKey[] | 'any'): void;
  /** The server has been out of reach for some seconds, called again and again; or is not any more. */
  reachable(isReachable: boolean): void;
}

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
    throw new Error(`cannot use ${serverOf(options.url)}: ${describeFailure(error)}`, {
      cause: error,
    });
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

const noObserver: PostgresObserver = {
  lost() {},
  restored() {},
  conflicted() {},
  commitUnknown() {},
  lockLost() {},
  unannounced() {},
  reachable() {},
};

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
  readonly #lock: ProcessLock;
  readonly #observer: PostgresObserver;
  readonly #faults: StorageFaults;
  readonly #statements = new PostgresStatements();
  readonly #queue = new AggregateQueue();
  readonly #running = new Set<Promise<unknown>>();
  readonly #timeouts: PostgresTimeouts;
  readonly #maxWaiting: number;
  readonly #unknown: UnknownCommits;
  readonly #watch: ServerWatch;
  readonly #listeners = new WriteListeners();
  #isUnreachable = false;
  #isClosed = false;

  constructor(
    options: PostgresOptions,
    parts: {
      readonly lock: ProcessLock;
      readonly observer: PostgresObserver;
      readonly timeouts: PostgresTimeouts;
    },
  ) {
    const { url, connections: most, lockMode, faults = {} } = options;
    this.#connections = new PostgresConnections(url, {
      limit: most,
      lockMode: lockMode,
      timeouts: parts.timeouts,
    });
    this.#lock = parts.lock;
    this.#observer = parts.observer;
    this.#faults = faults;
    this.#timeouts = parts.timeouts;
    this.#maxWaiting = options.maxWaiting ?? maxWaiting;
    this.#unknown = new UnknownCommits({
      pause: parts.timeouts.outcomeRetry,
      query: ({ keys, mark }) => this.#queryOutcome(beginWriteSql(keys), mark),
      committed: (keys) => this.#observer.unannounced(keys),
    });
    this.#watch = new ServerWatch({
      timeouts: parts.timeouts,
      probe: () => this.#lock.probe(),
      breakAll: () => {
        this.#lock.break();
        this.#connections.breakAll();
      },
      reachable: (isReachable) => this.#observer.reachable(isReachable),
    });
    // A process that is cut off serves again as soon as the server does.
    this.#lock.onHeldAgain(() => this.#watch.wake());
  }

  /** Whether this process holds its lock on the database. */
  get hasLock(): boolean {
    return this.#lock.isHeld;
  }

  read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    return this.#withRetries(() => this.#readOnce(work));
  }

  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T> {
    const keys = typeof aggregates === 'string' ? [aggregates] : aggregates;
    return this.#listeners.around(keys, work, (told) => this.#writeWith(keys, told));
  }

  /** Declines: every write takes the general way. */
  async append<Input, Output>(
    _kind: AppendKind<Input, Output>,
    _input: Input,
  ): Promise<Output | undefined> {
    return undefined;
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
    return this.#withRetries((until) =>
      this.#queue.run(keys, () => {
        // Earlier writes of the queue may have waited up to their own timeouts.
        if (performance.now() < until) return this.#writeOnce({ keys, begin, timeout }, work);
        throw new ConnectionsBusy('too many writes of one aggregate');
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    await this.#unknown[Symbol.asyncDispose]();
    await this.#watch[Symbol.asyncDispose]();
    await this.#connections.close();
    await this.#lock.release();
  }

  /**
   * Retries what failed for a temporary reason, up to the timeout of a call.
   * @param once runs the call; gets the deadline, on the clock of `performance.now`
   */
  #withRetries<T>(once: (until: number) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('storage is closed'));
    // Without notices of the other process, this one would answer with outdated state.
    const { lostTo } = this.#lock;
    if (lostTo !== undefined) {
      return Promise.reject(unavailable('another process has the database', { cause: lostTo }));
    }
    if (this.#running.size >= this.#maxWaiting) {
      return Promise.reject(unavailable('too many calls wait for storage: try again later'));
    }
    const running = this.#retrying(once).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  async #retrying<T>(once: (until: number) => Promise<T>): Promise<T> {
    const until = performance.now() + this.#timeouts.call;
    for (let longest = firstPause; ; longest = Math.min(longest * 2, longestPause)) {
      try {
        const value = await once(until);
        this.#markReachable();
        return value;
      } catch (error) {
        const kind = failureKind(error);
        if (kind === 'refused') throw error;
        if (kind === 'lost') this.#markUnreachable(error);
        // Random, so that two calls that conflicted do not conflict again.
        const pause = longest * (0.5 + Math.random() / 2);
        const isHopeless = kind === 'lost' && this.#watch.isSilent;
        if (isHopeless || performance.now() + pause > until)
          throw unavailable(unavailableReasons[kind], { cause: error });
        if (kind === 'conflict') this.#observer.conflicted();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  #markUnreachable(error: unknown): void {
    if (this.#isUnreachable) return;
    this.#isUnreachable = true;
    this.#observer.lost(error);
  }

  #markReachable(): void {
    if (!this.#isUnreachable) return;
    this.#isUnreachable = false;
    this.#observer.restored();
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

  async #writeOnce<T>(
    { keys, begin, timeout }: WritePlan,
    work: (tx: Writer) => Promise<T>,
  ): Promise<T> {
    const lease = await this.#connections.acquire();
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
      if (tx.isReading && tx.failure === undefined) this.#observer.unannounced(keys);
      throw rollBackAfter(lease, tx, error);
    } finally {
      tx.end();
    }
    const unanswered = await commit(lease, tx);
    this.#faults.reach?.('committed');
    if (unanswered !== undefined && !(await this.#wasCommitted(keys, unanswered))) {
      throw unanswered.cause;
    }
    if (tx.isReading) this.#observer.unannounced(keys);
    this.#faults.reach?.('answer');
    return value;
  }

  /**
   * Returns whether a write whose COMMIT was not answered was committed.
   *
   * @throws ProtocolError `temporarily_unavailable` if that cannot be found out
   */
  async #wasCommitted(
    keys: readonly AggregateKey[],
    { mark, cause }: UnansweredCommit,
  ): Promise<boolean> {
    const begin = beginWriteSql(keys);
    this.#markUnreachable(cause);
    const until = performance.now() + this.#timeouts.outcome;
    do {
      const found = await this.#queryOutcome(begin, mark);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, outcomePause));
    } while (performance.now() < until && !this.#watch.isSilent);
    this.#observer.commitUnknown(cause);
    this.#unknown.add({ keys, mark });
    throw unavailable('the outcome of the commit is unknown: check, then try again', { cause });
  }

  /** Returns `undefined` if the server does not answer, or still has the write in progress. */
  async #queryOutcome(begin: string, mark: CommitMark): Promise<boolean | undefined> {
    try {
      const lease = await this.#connections.acquire();
      try {
        await lease.client.query(begin);
        return await isCommitted(lease.client, mark);
      } finally {
        rollBack(lease);
      }
    } catch {
      return undefined;
    }
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

/** What a write locks, and the SQL that begins it. */
interface WritePlan {
  readonly keys: readonly AggregateKey[];
  readonly begin: string;
  /** Milliseconds for each statement, if they may take long. */
  readonly timeout: number | undefined;
}

const unavailableReasons = {
  conflict: 'too many conflicting writes: try again later',
  lost: 'storage cannot be reached',
  busy: 'storage is too busy',
} as const;

/** Rolls a transaction back, then releases its connection. */
function rollBack(lease: Lease): void {
  lease.client.query('ROLLBACK').then(
    () => lease.release(),
    (error: unknown) => lease.release(error),
  );
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
