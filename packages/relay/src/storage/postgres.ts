/** The engine for several processes: a PostgreSQL database that all of them use. */
import { ProtocolError } from '@posthouse/protocol';
import type { QueryResult } from 'pg';
import { AggregateQueue } from './aggregate-queue.ts';
import {
  type Lent,
  PostgresConnections,
  PostgresPlace,
  type Presence,
} from './postgres-connections.ts';
import { ConnectionLost, failureKind, fromDriver } from './postgres-errors.ts';
import { beginSql, PostgresStatements } from './postgres-sql.ts';
import { PostgresTransaction } from './postgres-transaction.ts';
import type { AggregateKey, Reader, Storage, StorageFaults, Writer } from './types.ts';

/** Milliseconds for which a call waits for a server that is away, or for others to get out of its way. */
const patience = 5_000;
/** Milliseconds for which the outcome of a commit is asked for. */
const settlePatience = 10_000;
/** Tries of one write that conflicts with others. */
const mostTries = 20;
/** Milliseconds before the second try; doubled for each further one, up to the longest. */
const firstWait = 5;
const longestWait = 500;
/** Works that may wait for a connection. More would only be answered too late. */
const maxWaiting = 20_000;

/** Hears of what operators must see. */
export interface PostgresObserver {
  /** The server cannot be reached; told once for each time. */
  lost(error: unknown): void;
  back(): void;
  /** A write is tried again after a conflict. */
  conflicted(): void;
  /** A commit whose outcome nobody could tell; its caller was told so. */
  unsettled(error: unknown): void;
  /** Another process uses the database in a way that excludes this one. */
  displaced(error: unknown): void;
}

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`. */
  readonly url: string;
  /** Connections at the most. */
  readonly connections: number;
  readonly presence: Presence;
  readonly faults?: StorageFaults | undefined;
  readonly observer?: PostgresObserver | undefined;
}

/**
 * Opens the database of the URL.
 *
 * Durable means what the server means by it; `synchronous_commit` is never `off`.
 *
 * @throws Error where it cannot be reached, is too old or not in UTF-8, or another process uses it
 *   in a way that excludes this one
 */
export async function openPostgres(options: PostgresOptions): Promise<PostgresStorage> {
  const observer = options.observer ?? noObserver;
  const place = new PostgresPlace(options.url, options.presence, (error) =>
    observer.displaced(error),
  );
  await place.take();
  const storage = new PostgresStorage(options, { place, observer });
  try {
    await storage.read((tx) => tx.get('SELECT 1 AS one'));
  } catch (error) {
    await storage[Symbol.asyncDispose]();
    throw error;
  }
  return storage;
}

const noObserver: PostgresObserver = {
  lost() {},
  back() {},
  conflicted() {},
  unsettled() {},
  displaced() {},
};

export class PostgresStorage implements Storage {
  readonly catalogueSql = `SELECT c.relname::text AS table_name, a.attname::text AS column_name,
      COALESCE(array_position(i.indkey::int2[], a.attnum), -1) + 1 AS key_position
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    ORDER BY c.relname, a.attnum`;
  readonly #connections: PostgresConnections;
  readonly #place: PostgresPlace;
  readonly #observer: PostgresObserver;
  readonly #faults: StorageFaults;
  readonly #statements = new PostgresStatements();
  readonly #queue = new AggregateQueue();
  readonly #running = new Set<Promise<unknown>>();
  #isAway = false;
  #isClosed = false;

  constructor(
    options: PostgresOptions,
    parts: { readonly place: PostgresPlace; readonly observer: PostgresObserver },
  ) {
    const { url, connections: most, presence, faults = {} } = options;
    this.#connections = new PostgresConnections(url, { most, presence });
    this.#place = parts.place;
    this.#observer = parts.observer;
    this.#faults = faults;
  }

  /** Whether this process has its place among those that use the database. */
  get hasPlace(): boolean {
    return this.#place.isHeld;
  }

  read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    return this.#patiently(() => this.#readOnce(work));
  }

  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T> {
    const keys = typeof aggregates === 'string' ? [aggregates] : aggregates;
    const begin = beginSql(keys);
    return this.#patiently(() => this.#queue.run(keys, () => this.#writeOnce(begin, work)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
    await this.#connections.close();
    await this.#place.leave();
  }

  /** Tries again what failed for a reason that passes, as long as a caller can be kept waiting. */
  #patiently<T>(once: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('storage is closed'));
    if (this.#running.size >= maxWaiting) {
      return Promise.reject(unavailable('too much waits for storage'));
    }
    const running = this.#retrying(once).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  async #retrying<T>(once: () => Promise<T>): Promise<T> {
    const until = performance.now() + patience;
    for (let tries = 1; ; tries += 1) {
      try {
        const value = await once();
        this.#reached();
        return value;
      } catch (error) {
        const kind = failureKind(error);
        if (kind === 'lost') this.#missed(error);
        else this.#reached();
        if (kind === 'refused') throw error;
        if (kind === 'busy') throw unavailable('storage is too busy', error);
        const wait =
          Math.min(firstWait * 2 ** (tries - 1), longestWait) * (0.5 + Math.random() / 2);
        if (performance.now() + wait > until || (kind === 'conflict' && tries >= mostTries)) {
          throw unavailable('storage cannot do it now', error);
        }
        if (kind === 'conflict') this.#observer.conflicted();
        await new Promise((resolve) => setTimeout(resolve, wait));
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
    this.#observer.back();
  }

  async #readOnce<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    const lent = await this.#connections.lend();
    const tx = this.#transaction(lent);
    // Both go out with the work's own queries: a snapshot costs no way there and back.
    const begun = lent.client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    begun.catch(() => {});
    try {
      const value = await work(tx);
      await begun;
      end(lent, 'COMMIT');
      return value;
    } catch (error) {
      throw abandon(lent, tx, error);
    } finally {
      tx.end();
    }
  }

  async #writeOnce<T>(begin: string, work: (tx: Writer) => Promise<T>): Promise<T> {
    const lent = await this.#connections.lend();
    const tx = this.#transaction(lent);
    let id: string;
    let value: T;
    try {
      id = transactionId(await lent.client.query(begin).catch(rethrowFromDriver));
      value = await work(tx);
      if (tx.failure !== undefined) throw new Error('a work went on behind a failed statement');
      this.#faults.beforeCommit?.();
    } catch (error) {
      throw abandon(lent, tx, error);
    } finally {
      tx.end();
    }
    try {
      const { command } = await lent.client.query('COMMIT').catch(rethrowFromDriver);
      if (command !== 'COMMIT') throw new Error('PostgreSQL rolled a write back');
      lent.release();
      return value;
    } catch (error) {
      lent.release(error);
      // What the server refuses to commit is not committed; a lost connection says nothing.
      if (failureKind(error) !== 'lost') throw error;
      await this.#settle(id, lent.timeline, error);
      return value;
    }
  }

  /**
   * Asks what became of a transaction whose COMMIT was not answered. Returns where it was
   * committed.
   *
   * @throws ConnectionLost where it was not; ProtocolError `temporarily_unavailable` where nobody
   *   can tell
   */
  async #settle(id: string, timeline: string, cause: unknown): Promise<void> {
    this.#missed(cause);
    const until = performance.now() + settlePatience;
    while (performance.now() < until) {
      const status = await this.#statusOf(id, timeline);
      if (status === 'committed') return;
      if (status === 'aborted') throw new ConnectionLost('a write was not committed', { cause });
      await new Promise((resolve) => setTimeout(resolve, longestWait / 5));
    }
    this.#observer.unsettled(cause);
    throw unavailable('nobody can tell whether it was stored', cause);
  }

  /** `undefined` where the server does not answer, is not done with it yet, or is another one. */
  async #statusOf(id: string, timeline: string): Promise<'committed' | 'aborted' | undefined> {
    try {
      const lent = await this.#connections.lend();
      try {
        if (lent.timeline !== timeline) throw new Error('another server took over');
        const { rows } = await lent.client.query<{ status: string | null }>(
          'SELECT pg_xact_status($1::xid8) AS status',
          [id],
        );
        lent.release();
        const status = rows[0]?.status;
        return status === 'committed' || status === 'aborted' ? status : undefined;
      } catch (error) {
        lent.release(error);
        throw error;
      }
    } catch {
      return undefined;
    }
  }

  #transaction({ client }: Lent): PostgresTransaction {
    return new PostgresTransaction(client, {
      statements: this.#statements,
      faults: this.#faults,
    });
  }
}

/** Ends a transaction that nobody waits for, and gives its connection back when it has. */
function end(lent: Lent, how: 'COMMIT' | 'ROLLBACK'): void {
  lent.client.query(how).then(
    () => lent.release(),
    (error: unknown) => lent.release(error),
  );
}

/**
 * Undoes a transaction.
 * @returns what to throw: the database's own failure where another try may help
 */
function abandon(lent: Lent, tx: PostgresTransaction, error: unknown): unknown {
  const reason = failureKind(tx.failure) === 'refused' ? error : tx.failure;
  if (failureKind(reason) === 'lost') lent.release(reason);
  else end(lent, 'ROLLBACK');
  return reason;
}

function rethrowFromDriver(error: unknown): never {
  throw fromDriver(error);
}

function transactionId(results: unknown): string {
  // Several statements in one query have a result each.
  const last = (results as QueryResult<{ id: string }>[]).at(-1);
  const id = last?.rows[0]?.id;
  if (id === undefined) throw new Error('PostgreSQL gave a write no number');
  return id;
}

function unavailable(message: string, cause?: unknown): ProtocolError {
  return new ProtocolError('temporarily_unavailable', message, { cause });
}
