/** A backup opened for reading: a SQLite file with the relay's tables, a manifest and perhaps keys. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import type { ProgressState } from '@posthouse/protocol/progress';
import { digestTable, readTables, type Table } from '../storage/move/rows.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import { runSqlite } from '../storage/sqlite/process.ts';
import { sqliteCatalogue } from '../storage/sqlite/storage.ts';
import type { Migration, Reader, Row } from '../storage/types.ts';
import {
  BackupError,
  keysTable,
  type Manifest,
  manifestTable,
  parseManifest,
  sha256,
} from './manifest.ts';
import { schemaDifference } from './schema.ts';

/** What long work on a backup is given. */
export interface BackupWork {
  /** Stops between two batches. */
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((state: ProgressState) => void) | undefined;
}

const checkProgram = "return database.prepare('PRAGMA integrity_check(1)').get().integrity_check;";

/** The first bytes of each SQLite file. */
const magic = 'SQLite format 3\u0000';

/** A backup opened for reading; nothing in it is trusted before {@link check}. */
export class BackupFile implements Disposable {
  /** The name of the file in errors. */
  readonly path: string;
  readonly #file: string;
  readonly manifest: Manifest;
  readonly #connection: SqliteConnection;

  /**
   * @param name by which errors call it, if it is a copy
   * @throws BackupError if it is no backup, or its manifest is damaged
   */
  constructor(path: string, name = path) {
    this.path = name;
    this.#file = path;
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) throw new BackupError(`${name}: there is no such file: check --from`);
    // To open a pipe would wait for its writer, for ever.
    if (!found.isFile() || !isSqlite(path)) throw notBackup(name);
    this.#connection = new SqliteConnection(path, { readOnly: true });
    try {
      this.manifest = this.#readManifest();
    } catch (error) {
      this.#connection.close();
      throw error;
    }
  }

  #readManifest(): Manifest {
    return this.#named(() => {
      // A view under such a name could be a query without end.
      const found = this.#connection.all(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (?, ?)",
        [manifestTable, keysTable],
      );
      if (found.length < 2) throw notBackup(this.path);
      const row = this.#connection.get(`SELECT manifest, digest FROM ${manifestTable}`, []);
      if (row === undefined) throw notBackup(this.path);
      return parseManifest(String(row.manifest), String(row.digest));
    });
  }

  /** Reads rows; the work awaits nothing but its reader. */
  readonly read = async <T>(work: (tx: Reader) => Promise<T>): Promise<T> => {
    const connection = this.#connection;
    const reader: Reader = {
      get: async <R extends Row>(sql: string, ...values: (string | number | null)[]) =>
        this.#named(() => connection.get(sql, values) as R | undefined),
      all: async <R extends Row>(sql: string, ...values: (string | number | null)[]) =>
        this.#named(() => connection.all(sql, values) as R[]),
    };
    return await work(reader);
  };

  /** Returns the relay's tables, sorted by name. */
  async tables(): Promise<Table[]> {
    const all = await readTables({ read: this.read, catalogueSql: sqliteCatalogue });
    return all.filter(({ name }) => name !== manifestTable && name !== keysTable);
  }

  /** Returns the key files by name; empty without `--with-keys`. */
  keys(): ReadonlyMap<string, string> {
    const rows = this.#named(() =>
      this.#connection.all(`SELECT name, content FROM ${keysTable} ORDER BY name`, []),
    );
    return new Map(rows.map(({ name, content }) => [String(name), String(content)]));
  }

  /**
   * Checks the file's pages and indexes, compares the digest of every table and key with the manifest, and
   * everything else of the schema with what the migrations make.
   * @throws BackupError that names the first difference; the reason of the signal
   */
  async check(
    migrations: readonly Migration[],
    { signal, progress }: BackupWork = {},
  ): Promise<void> {
    progress?.({ step: 'checking the file', done: 0, total: 1 });
    const problem = await this.#checkPages(signal);
    if (problem !== 'ok') throw this.damaged(problem);
    progress?.({ step: 'checking the file', done: 1, total: 1 });
    const expected = new Map(Object.entries(this.manifest.tables));
    for (const table of await this.tables()) {
      const digest = expected.get(table.name);
      if (digest === undefined) throw this.damaged(`an unknown table ${table.name}`);
      expected.delete(table.name);
      const found = await digestTable(table, pausing(this.read, signal), (done) =>
        progress?.({ step: `checking ${table.name}`, done, total: digest.rows }),
      );
      if (found.digest !== digest.digest) throw this.damaged(`rows of ${table.name} differ`);
    }
    const [missing] = expected.keys();
    if (missing !== undefined) throw this.damaged(`the table ${missing} is missing`);
    const difference = this.#named(() =>
      schemaDifference(this.#connection, this.manifest, migrations),
    );
    if (difference !== undefined) throw this.damaged(difference);
    const keys = this.keys();
    const listed = Object.entries(this.manifest.keys);
    const isSame = ([name, digest]: [string, string]) => sha256(keys.get(name) ?? '') === digest;
    if (listed.length !== keys.size || !listed.every(isSame)) throw this.damaged('its keys differ');
  }

  /** Digests of rows say nothing of indexes. */
  async #checkPages(signal: AbortSignal | undefined): Promise<string> {
    try {
      return await runSqlite(checkProgram, { path: this.#file, signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw this.damaged((error as Error).message, error);
    }
  }

  /** Returns the error of a damaged file. The reason may be a text of the file: it is one line. */
  damaged(why: string, cause?: unknown): BackupError {
    const line = why.replaceAll('\n', ' ');
    return new BackupError(`${this.path} is damaged: ${line}; use another backup`, { cause });
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  #named<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof BackupError) {
        if (error.message.startsWith(this.path)) throw error;
        throw new BackupError(`${this.path}: ${error.message}`, { cause: error });
      }
      throw this.damaged((error as Error).message, error);
    }
  }
}

/** Wraps reads so that other work, a signal for example, gets a turn before each. */
export function pausing(
  read: <T>(work: (tx: Reader) => Promise<T>) => Promise<T>,
  signal: AbortSignal | undefined,
) {
  return async <T>(work: (tx: Reader) => Promise<T>): Promise<T> => {
    await turn();
    signal?.throwIfAborted();
    return await read(work);
  };
}

function isSqlite(path: string): boolean {
  const bytes = Buffer.alloc(magic.length);
  const file = openSync(path, 'r');
  try {
    return readSync(file, bytes) === magic.length && bytes.toString('latin1') === magic;
  } finally {
    closeSync(file);
  }
}

function notBackup(path: string): BackupError {
  return new BackupError(`${path} is no backup of posthouse: check --from`);
}
