/** The engine for several processes: a PostgreSQL database that all of them use. */
import { ProtocolError } from '@posthouse/protocol';
import type { AggregateKey, Reader, Storage, StorageFaults, Writer } from '../types.ts';
import { AggregateQueue } from './aggregate-queue.ts';
import { type CommitMark, commitsTable, isCommitted, markCommit } from './commits.ts';
import { type Lease, PostgresConnections } from './connections.ts';
import { ConnectionsBusy, describeFailure, failureKind, fromDriver } from './errors.ts';
import { type LockMode, ProcessLock } from './process-lock.ts';
import { beginReadSql, beginWriteSql, PostgresStatements } from './sql.ts';
import { defaultTimeouts, type PostgresTimeouts } from './timeouts.ts';
import { PostgresTransaction } from './transaction.ts';

/** Milliseconds before the second try; doubled for each further one, up to the longest. */
const firstPause = 5;
const longestPause = 500;
/** Milliseconds between two questions for the outcome of a commit. */
const outcomePause = 100;
/** Calls that may be under way or wait. More would only be answered too late. */
const maxWaiting = 20_000;

/** Hears of what operators must see. */
export interface PostgresObserver {
  /** The server cannot be reached; told once for each time. */
  lost(error: unknown): void;
  restored(): void;
  /** A write is tried again after a conflict. */
  conflicted(): void;
  /** A commit whose outcome nobody could tell; its caller was told so. */
  commitUnknown(error: unknown): void;
  /** Another process uses the database in a way that excludes this one. */
  lockLost(error: unknown): void;
}

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  readonly url: string;
  /** Connections at the most. */
  readonly connections: number;
  readonly lockMode: LockMode;
  readonly faults?: StorageFaults | undefined;
  readonly observer?: PostgresObserver | undefined;
  readonly timeouts?: Partial<PostgresTimeouts> | undefined;
  /** Calls that may be under way or wait. */
  readonly maxWaiting?: number | undefined;
}

/**
 * Opens the database of the URL.
 *
 * Durable means what the server means by it; `synchronous_commit` is never `off`.
 *
 * @throws Error with a sentence for operators where it cannot be reached, is too old or not in
 *   UTF-8, or another process uses it in a way that excludes this one
 */
export async function openPostgres(options: PostgresOptions): Promise<PostgresStorage> {
  const observer = options.observer ?? noObserver;
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const place = new ProcessLock(options.url, {
    lockMode: options.lockMode,
    timeouts,
    onLost: (error) => observer.lockLost(error),
  });
  try {
    await place.acquire();
  } catch (error) {
    throw new Error(`cannot use ${serverOf(options.url)}: ${describeFailure(error)}`, {
      cause: error,
    });
  }
  const storage = new PostgresStorage(options, { place, observer, timeouts });
  try {
    await storage.read((tx) => tx.get('SELECT 1 AS one'));
  } catch (error) {
    await storage[Symbol.asyncDispose]();
    throw error;
  }
  return storage;
}

/** Where the database is, without who asks for it. */
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
  readonly #place: ProcessLock;
  readonly #observer: PostgresObserver;
  readonly #faults: StorageFaults;
  readonly #statements = new PostgresStatements();
  readonly #queue = new AggregateQueue();
  readonly #running = new Set<Promise<unknown>>();
  readonly #timeouts: PostgresTimeouts;
  readonly #maxWaiting: number;
  #isAway = false;
  #isClosed = false;

  constructor(
    options: PostgresOptions,
    parts: {
      readonly place: ProcessLock;
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
    this.#place = parts.place;
    this.#observer = parts.observer;
    this.#faults = faults;
    this.#timeouts = parts.timeouts;
    this.#maxWaiting = options.maxWaiting ?? maxWaiting;
  }

  /** Whether this process has its place among those that use the database. */
  get hasLock(): boolean {
    return this.#place.isHeld;
  }

  read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    return this.#patiently(() => this.#readOnce(work));
  }

  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T> {
    return this.#writeOf(typeof aggregates === 'string' ? [aggregates] : aggregates, work);
  }

  define<T>(work: (tx: Writer) => Promise<T>): Promise<T> {
    return this.#writeOf(['relay'], work, this.#timeouts.definition);
  }

  #writeOf<T>(
    keys: readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    patience?: number,
  ): Promise<T> {
    const begins = { write: beginWriteSql(keys, patience), look: beginWriteSql(keys) };
    return this.#patiently((until) =>
      this.#queue.run(keys, () => {
        // Each of those before may have had its own patience with a server that is away.
        if (performance.now() < until) return this.#writeOnce(begins, work, patience);
        throw new ConnectionsBusy('too many writes of one aggregate');
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    await this.#connections.close();
    await this.#place.release();
  }

  /**
   * Tries again what failed for a reason that passes, as long as a caller can be kept waiting:
   * `until`, on the clock of `performance.now`.
   */
  #patiently<T>(once: (until: number) => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('storage is closed'));
    // Those who share a database without hearing each other would answer what is true no more.
    const { lostTo } = this.#place;
    if (lostTo !== undefined) {
      return Promise.reject(unavailable('another process has the database', lostTo));
    }
    if (this.#running.size >= this.#maxWaiting) {
      return Promise.reject(unavailable('too much timeouts for storage'));
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
        this.#reached();
        return value;
      } catch (error) {
        const kind = failureKind(error);
        if (kind === 'refused') throw error;
        if (kind === 'lost') this.#missed(error);
        // Those who met each other must not meet again.
        const pause = longest * (0.5 + Math.random() / 2);
        if (performance.now() + pause > until) throw unavailable(unavailableReasons[kind], error);
        if (kind === 'conflict') this.#observer.conflicted();
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  #missed(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#observer.lost(error);
  }

  #reached(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#observer.restored();
  }

  async #readOnce<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    const lent = await this.#connections.acquire();
    const tx = this.#transaction(lent, beginReadSql);
    try {
      const value = await work(tx);
      await tx.begun;
      end(lent);
      return value;
    } catch (error) {
      throw rollBackAfter(lent, tx, error);
    } finally {
      tx.end();
    }
  }

  /** @param begins how the write begins, and a look for what became of it */
  async #writeOnce<T>(
    begins: { readonly write: string; readonly look: string },
    work: (tx: Writer) => Promise<T>,
    patience?: number,
  ): Promise<T> {
    const lent = await this.#connections.acquire();
    const tx = this.#transaction(lent, begins.write, patience);
    let value: T;
    try {
      value = await work(tx);
      await tx.begun;
      if (tx.failure !== undefined) throw new Error('a work went on behind a failed statement');
      this.#faults.beforeCommit?.();
    } catch (error) {
      throw rollBackAfter(lent, tx, error);
    } finally {
      tx.end();
    }
    const unanswered = await commit(lent, tx);
    if (unanswered === undefined || (await this.#wasCommitted(begins.look, unanswered))) {
      return value;
    }
    throw unanswered.cause;
  }

  /**
   * Asks what became of a write whose COMMIT was not answered.
   *
   * @throws ProtocolError `temporarily_unavailable` where nobody can tell
   */
  async #wasCommitted(begin: string, { mark, cause }: UnansweredCommit): Promise<boolean> {
    this.#missed(cause);
    const until = performance.now() + this.#timeouts.outcome;
    do {
      const found = await this.#lookUp(begin, mark);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, outcomePause));
    } while (performance.now() < until);
    this.#observer.commitUnknown(cause);
    throw unavailable('nobody can tell whether it was stored', cause);
  }

  /** `undefined` where the server does not answer, or is not done with the write. */
  async #lookUp(begin: string, mark: CommitMark): Promise<boolean | undefined> {
    try {
      const lent = await this.#connections.acquire();
      try {
        await lent.client.query(begin);
        return await isCommitted(lent.client, mark);
      } finally {
        end(lent);
      }
    } catch {
      return undefined;
    }
  }

  #transaction({ client }: Lease, begin: string, patience?: number): PostgresTransaction {
    const statements = this.#statements;
    const answer = patience && patience + this.#timeouts.connect;
    return new PostgresTransaction(client, { begin, statements, faults: this.#faults, answer });
  }
}

const unavailableReasons = {
  conflict: 'too much happens at once',
  lost: 'storage cannot be reached',
  busy: 'storage is too busy',
} as const;

/** A COMMIT without an answer, or with one that says nothing about it. */
interface UnansweredCommit {
  readonly mark: CommitMark;
  readonly cause: unknown;
}

/**
 * Commits, and gives the connection back.
 *
 * @throws what it failed with, where nothing was committed
 */
async function commit(lent: Lease, tx: PostgresTransaction): Promise<UnansweredCommit | undefined> {
  const { client } = lent;
  // What changed nothing can be done again without asking.
  const marked = tx.isReading ? undefined : markCommit(client);
  const [noted, committed] = await Promise.allSettled([marked?.noted, client.query('COMMIT')]);
  if (committed.status === 'fulfilled' && committed.value.command === 'COMMIT') {
    lent.release();
    return undefined;
  }
  const cause = commitFailure(tx, noted, committed);
  lent.release(cause);
  // What the server refuses is not committed; a connection that broke says nothing.
  if (marked === undefined || failureKind(cause) !== 'lost') throw cause;
  return { mark: marked.mark, cause };
}

/** COMMIT of a transaction in which something failed succeeds too, as a ROLLBACK. */
function commitFailure(
  tx: PostgresTransaction,
  ...outcomes: readonly PromiseSettledResult<unknown>[]
): unknown {
  const rejected = outcomes.find((outcome) => outcome.status === 'rejected');
  if (tx.failure !== undefined) return tx.failure;
  if (rejected !== undefined) return fromDriver(rejected.reason);
  return new Error('PostgreSQL rolled a write back');
}

/** Ends a transaction that is to leave nothing, and gives its connection back when it has. */
function end(lent: Lease): void {
  lent.client.query('ROLLBACK').then(
    () => lent.release(),
    (error: unknown) => lent.release(error),
  );
}

/**
 * Undoes a transaction.
 * @returns what to throw: the database's own failure where another try may help
 */
function rollBackAfter(lent: Lease, tx: PostgresTransaction, error: unknown): unknown {
  const reason = failureKind(tx.failure) === 'refused' ? error : tx.failure;
  if (failureKind(reason) === 'lost') lent.release(reason);
  else end(lent);
  return reason;
}

function unavailable(message: string, cause?: unknown): ProtocolError {
  return new ProtocolError('temporarily_unavailable', message, { cause });
}
