import { chmodSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError } from '../errors.ts';
import { Mutex } from './mutex.ts';
import { SqliteCommits } from './sqlite-commits.ts';
import { asStoreError, isSqliteError, sqliteBusy } from './sqlite-error.ts';
import { createPrivateFile, lockFile } from './sqlite-lock.ts';
import type { Store, StoreRange, StoreReader, StoreWriter } from './types.ts';

/** Version of the file's layout, in SQLite's `user_version`. */
const layout = 1;

/** Marks the file as a store of this client, in SQLite's `application_id`: `phou` in ASCII. */
const applicationId = 0x70_68_6f_75;

/** Keys are ASCII, so DEL sorts after every key and after every suffix of a prefix. */
const top = '\u007f';

/** Milliseconds to wait for another process's transaction. */
const lockTimeout = 10_000;

/** Milliseconds between two attempts to begin a transaction. */
const lockInterval = 10;

/**
 * A store in one SQLite file, which only its owner may read: it holds private keys. Several
 * processes may open the same file.
 *
 * @example
 * import { SqliteStore } from '@posthouse/client/node';
 * await using store = SqliteStore.open('/home/ann/.courier/store.sqlite');
 */
export class SqliteStore implements Store {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #turnstile = new Mutex();
  readonly #transaction: SqliteTransaction;
  readonly #commits: SqliteCommits;

  private constructor(path: string, database: DatabaseSync) {
    this.#path = path;
    this.#database = database;
    this.#transaction = new SqliteTransaction(database);
    this.#commits = new SqliteCommits(database);
  }

  /**
   * Opens the file, or creates it; the folder must exist.
   *
   * @throws ClientError `store_mismatch` for a file of a newer version or of another application;
   *   `store_damaged`, `store_unavailable`
   * @example
   * import { SqliteStore } from '@posthouse/client/node';
   * await using store = SqliteStore.open('store.sqlite');
   */
  static open(path: string): SqliteStore {
    // SQLite creates its side files with the mode of the main file: set it before any write.
    createPrivateFile(path);
    const database = new DatabaseSync(path, { timeout: lockTimeout });
    try {
      checkLayout(database);
      chmodSync(path, 0o600);
      database.exec('PRAGMA journal_mode = WAL');
      database.exec('PRAGMA synchronous = FULL');
      prepareLayout(database);
      database.exec('PRAGMA busy_timeout = 0');
      return new SqliteStore(path, database);
    } catch (error) {
      database.close();
      throw asStoreError(error);
    }
  }

  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    return this.#run('BEGIN', work);
  }

  async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    const result = await this.#run('BEGIN IMMEDIATE', work);
    this.#commits.notify();
    return result;
  }

  lock(name: string, options: { readonly signal: AbortSignal }): Promise<Disposable> {
    return lockFile(`${this.#path}-${name}.lock`, options);
  }

  watch(changed: () => void): Disposable {
    return this.#commits.watch(changed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#turnstile.run(async () => {
      this.#commits.close();
      if (this.#database.isOpen) this.#database.close();
    });
  }

  /** Waits without blocking: a transaction of this same thread may have to end first. */
  async #begin(begin: string): Promise<void> {
    const over = Date.now() + lockTimeout;
    for (;;) {
      try {
        this.#database.exec(begin);
        return;
      } catch (error) {
        if (!isSqliteError(error, sqliteBusy) || Date.now() > over) throw error;
        await sleep(lockInterval);
      }
    }
  }

  #run<T>(begin: string, work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(async () => {
      try {
        await this.#begin(begin);
        const result = await work(this.#transaction);
        this.#database.exec('COMMIT');
        return result;
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw asStoreError(error);
      }
    });
  }
}

/** @throws ClientError `store_mismatch` for a file of a newer version or of another application */
function checkLayout(database: DatabaseSync): void {
  const found = pragma(database, 'user_version');
  const tables = database.prepare('SELECT name FROM sqlite_schema').all();
  const isOther =
    ![0, applicationId].includes(pragma(database, 'application_id')) ||
    (found === 0 ? tables.length > 0 : found === layout && !tables.some(isEntries));
  if (isOther) {
    throw new ClientError(
      'store_mismatch',
      'the file belongs to another application: choose another file for the store',
    );
  }
  if (found !== 0 && found !== layout) {
    throw new ClientError(
      'store_mismatch',
      `the store has layout ${found}, expected ${layout}: use the version that wrote it, or a newer one`,
    );
  }
}

function isEntries({ name }: Record<string, unknown>): boolean {
  return name === 'entries';
}

function pragma(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return database.prepare(`PRAGMA ${name}`).get()?.[name] as number;
}

function prepareLayout(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  if (pragma(database, 'user_version') === 0) {
    database.exec(
      `CREATE TABLE entries (
         collection TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (collection, key)
       ) STRICT, WITHOUT ROWID`,
    );
    database.exec(`PRAGMA user_version = ${layout}`);
  }
  if (pragma(database, 'application_id') !== applicationId) {
    database.exec(`PRAGMA application_id = ${applicationId}`);
  }
  database.exec('COMMIT');
}

/** How the keys of a list begin: after a key, or at it. */
type Start = '>' | '>=';

class SqliteTransaction implements StoreWriter {
  readonly #get: StatementSync;
  readonly #lists: Record<Start, { readonly up: StatementSync; readonly down: StatementSync }>;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;

  constructor(database: DatabaseSync) {
    // One bound on each side: of two, SQLite seeks with one and compares every row with the other.
    const list = (start: Start) => {
      const select = `SELECT key, text FROM entries
        WHERE collection = ? AND key ${start} ? AND key < ? ORDER BY key`;
      return {
        up: database.prepare(`${select} LIMIT ?`),
        down: database.prepare(`${select} DESC LIMIT ?`),
      };
    };
    this.#lists = { '>': list('>'), '>=': list('>=') };
    this.#get = database.prepare('SELECT text FROM entries WHERE collection = ? AND key = ?');
    this.#put = database.prepare(
      `INSERT INTO entries (collection, key, text) VALUES (?, ?, ?)
       ON CONFLICT (collection, key) DO UPDATE SET text = excluded.text`,
    );
    this.#delete = database.prepare('DELETE FROM entries WHERE collection = ? AND key = ?');
  }

  async get(collection: string, key: string): Promise<string | undefined> {
    return this.#get.get(collection, key)?.text as string | undefined;
  }

  async list(
    collection: string,
    { prefix = '', after, before, limit = -1, reverse = false }: StoreRange = {},
  ): Promise<(readonly [string, string])[]> {
    const isAfter = after !== undefined && after >= prefix;
    const { up, down } = this.#lists[isAfter ? '>' : '>='];
    const end = prefix + top;
    const upper = before !== undefined && before < end ? before : end;
    const rows = (reverse ? down : up).all(collection, isAfter ? after : prefix, upper, limit);
    return rows.map((row) => [row.key as string, row.text as string] as const);
  }

  async put(collection: string, key: string, text: string): Promise<void> {
    this.#put.run(collection, key, text);
  }

  async delete(collection: string, key: string): Promise<void> {
    this.#delete.run(collection, key);
  }
}
