import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { SqliteObserver } from '../../src/storage/sqlite/failures.ts';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import type { StorageFaults, SyncWriter, Writer } from '../../src/storage/types.ts';
import { temporaryFolder } from './folder.ts';

const insertSql = 'INSERT INTO things (name) VALUES (?)';

/** Returns a work that inserts a row. */
export const insertThing = (name: string) => (tx: Writer) => tx.run(insertSql, name);

/** Inserts a row, in an append. */
export const appendThing = (tx: SyncWriter, name: string) => tx.run(insertSql, name);

/** Returns the names of all rows, in order. */
export async function thingNames(storage: SqliteStorage): Promise<string[]> {
  const rows = await storage.read((tx) =>
    tx.all<{ name: string }>('SELECT name FROM things ORDER BY name'),
  );
  return rows.map(({ name }) => name);
}

/** The embedded engine itself, in a folder of its own, with one table. */
class SqliteThings {
  faults: StorageFaults = {};
  #folder: ReturnType<typeof temporaryFolder> | undefined;
  #storage: SqliteStorage | undefined;

  async start(columns: string, observer: SqliteObserver | undefined): Promise<void> {
    this.#folder = temporaryFolder();
    this.faults = {};
    this.#storage = openSqlite(this.path, this.faults, observer);
    await this.storage.write('relay', (tx) => tx.run(`CREATE TABLE things (${columns})`));
  }

  async end(): Promise<void> {
    await this.#storage?.[Symbol.asyncDispose]();
    this.#folder?.[Symbol.dispose]();
  }

  get path(): string {
    if (this.#folder === undefined) throw new Error('no test runs');
    return this.#folder.path;
  }

  /** Path of the database. */
  get database(): string {
    return join(this.path, 'relay.sqlite');
  }

  get storage(): SqliteStorage {
    if (this.#storage === undefined) throw new Error('no test runs');
    return this.#storage;
  }

  set storage(storage: SqliteStorage) {
    this.#storage = storage;
  }

  /** Returns the names of all rows, in order. */
  async names(): Promise<string[]> {
    return await thingNames(this.storage);
  }
}

/**
 * Opens SQLite with a table `things` before each test of the file, and closes it afterwards.
 *
 * @param options.observer with one, the log is flushed on the thread pool and copied in a thread
 *
 * @example
 * const sqlite = sqliteThings();
 * test('...', async () => {
 *   await sqlite.storage.write('x', insertThing('one'));
 *   expect(await sqlite.names()).toEqual(['one']);
 * });
 */
export function sqliteThings({
  columns = 'name TEXT PRIMARY KEY',
  observer,
}: {
  readonly columns?: string;
  readonly observer?: SqliteObserver;
} = {}): SqliteThings {
  const sqlite = new SqliteThings();
  beforeEach(() => sqlite.start(columns, observer));
  afterEach(() => sqlite.end());
  return sqlite;
}
