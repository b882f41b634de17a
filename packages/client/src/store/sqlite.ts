import { chmodSync } from 'node:fs';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError } from '../errors.ts';
import { Mutex } from './mutex.ts';
import { SqliteCommits } from './sqlite-commits.ts';
import { isSqliteError, sqliteBusy } from './sqlite-error.ts';
import { createPrivateFile, lockFile } from './sqlite-lock.ts';
import type { Store, StoreRange, StoreReader, StoreWriter } from './types.ts';

/** Version of the file's layout, in SQLite's `user_version`. */
const layout = 1;

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
   * @throws ClientError `store_mismatch` for a file that a newer version wrote
   * @example
   * import { SqliteStore } from '@posthouse/client/node';
   * await using store = SqliteStore.open('store.sqlite');
   */
  static open(path: string): SqliteStore {
    // SQLite creates its side files with the mode of the main file: set it before any write.
    createPrivateFile(path);
    chmodSync(path, 0o600);
    const database = new DatabaseSync(path, { timeout: lockTimeout });
    try {
      database.exec('PRAGMA journal_mode = WAL');
      database.exec('PRAGMA synchronous = FULL');
      prepareLayout(database);
      database.exec('PRAGMA busy_timeout = 0');
      return new SqliteStore(path, database);
    } catch (error) {
      database.close();
      throw error;
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
        if (!isSqliteError(error, sqliteBusy)) throw error;
        if (Date.now() > over) {
          throw new ClientError(
            'store_unavailable',
            'another program has been writing to the store for ten seconds: end it, then try again',
            { cause: error },
          );
        }
        await sleep(lockInterval);
      }
    }
  }

  #run<T>(begin: string, work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return this.#turnstile.run(async () => {
      await this.#begin(begin);
      try {
        const result = await work(this.#transaction);
        this.#database.exec('COMMIT');
        return result;
      } catch (error) {
        if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
        throw error;
      }
    });
  }
}

function prepareLayout(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const found = database.prepare('PRAGMA user_version').get()?.user_version;
  if (found === 0) {
    database.exec(
      `CREATE TABLE entries (
         collection TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY (collection, key)
       ) STRICT, WITHOUT ROWID`,
    );
    database.exec(`PRAGMA user_version = ${layout}`);
  } else if (found !== layout) {
    throw new ClientError(
      'store_mismatch',
      `the store has layout ${found}, expected ${layout}: use the version that wrote it, or a newer one`,
    );
  }
  database.exec('COMMIT');
}

class SqliteTransaction implements StoreWriter {
  readonly #get: StatementSync;
  readonly #ascending: StatementSync;
  readonly #descending: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;

  constructor(database: DatabaseSync) {
    const list = `SELECT key, text FROM entries
      WHERE collection = ? AND key > ? AND key >= ? AND key < ? AND key < ? ORDER BY key`;
    this.#get = database.prepare('SELECT text FROM entries WHERE collection = ? AND key = ?');
    this.#ascending = database.prepare(`${list} LIMIT ?`);
    this.#descending = database.prepare(`${list} DESC LIMIT ?`);
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
    { prefix = '', after = '', before = top, limit = -1, reverse = false }: StoreRange = {},
  ): Promise<(readonly [string, string])[]> {
    const statement = reverse ? this.#descending : this.#ascending;
    const rows = statement.all(collection, after, prefix, `${prefix}${top}`, before, limit);
    return rows.map((row) => [row.key as string, row.text as string] as const);
  }

  async put(collection: string, key: string, text: string): Promise<void> {
    this.#put.run(collection, key, text);
  }

  async delete(collection: string, key: string): Promise<void> {
    this.#delete.run(collection, key);
  }
}
