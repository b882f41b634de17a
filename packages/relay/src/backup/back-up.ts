/** Makes a backup of a relay's database, while the relay runs or not. */
import { readFile, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { RelayConfig } from '../config/index.ts';
import { keyFiles, keyFolder, loadKeys } from '../keys/keys.ts';
import { makeFolder } from '../make-folder.ts';
import { readApplied } from '../storage/migrations.ts';
import { moveTable } from '../storage/move/mark.ts';
import { digestTable, readTables, type TableDigest } from '../storage/move/rows.ts';
import { openAlongside } from '../storage/open.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import { databaseOf } from '../storage/sqlite/folder.ts';
import { sqliteCatalogue } from '../storage/sqlite/storage.ts';
import type { Migration, Reader, Row } from '../storage/types.ts';
import { type BackupWork, pausing } from './backup-file.ts';
import { copyRows } from './copy-postgres.ts';
import { copySqlite } from './copy-sqlite.ts';
import { onDiskOf, partialFolder, requireRoom } from './files.ts';
import {
  BackupError,
  keysTable,
  type Manifest,
  manifestTable,
  manifestText,
  sha256,
} from './manifest.ts';

export interface BackUpOptions extends BackupWork {
  readonly config: Pick<RelayConfig, 'data' | 'storage'>;
  /** Path of the file to be made. */
  readonly to: string;
  /** Whether the relay's keys go into the file. */
  readonly withKeys: boolean;
  /** Every migration of the relay. */
  readonly migrations: readonly Migration[];
  /** Unix seconds. */
  readonly now: number;
}

/** Milliseconds for a statement, and for its answer: it may count all rows of a large table. */
const timeouts = { statement: 120_000, answer: 125_000 } as const;

/** Names in the data folder that SQLite and the relay take for files of theirs, and remove or obey. */
const ownNames =
  /^(?:(?:relay\.sqlite|lock)(?:-wal|-shm|-journal)?|relay\.sqlite\.part|restoring|replaced|reserve|generation|keys)$/;

/**
 * Copies one snapshot of the database to a new file, with a manifest of digests. The file has one form
 * for both engines. It is written under another name, read again in full, flushed, and then renamed; the
 * relay's calls go on meanwhile.
 *
 * @returns the manifest, without digests of keys
 * @throws BackupError that ends in what to do; the reason of the signal
 */
export async function backUp(options: BackUpOptions): Promise<Manifest> {
  const { config, to, withKeys } = options;
  if (resolve(dirname(to)) === resolve(config.data) && ownNames.test(basename(to))) {
    throw new BackupError(`${to} has a name of the relay's own files: give a file elsewhere`);
  }
  // Before the work, so that a backup without the keys that it was to have is not made.
  const keys = withKeys ? await readKeys(config.data) : new Map<string, string>();
  return await onDiskOf(dirname(to), async () => {
    await using partial = await partialFolder(to);
    await copySnapshot(options, partial.file);
    const manifest = await addManifest(partial.file, options, keys);
    options.signal?.throwIfAborted();
    await partial.complete();
    return manifest;
  });
}

async function copySnapshot(options: BackUpOptions, file: string): Promise<void> {
  const { config, migrations, signal, progress } = options;
  // Also refuses a database of another version, and one that was moved.
  await using source = await openAlongside(config, migrations, timeouts);
  if (config.storage.engine === 'sqlite') {
    const { bytes, unused } = await source.space();
    requireRoom(dirname(options.to), bytes - unused, 'the backup');
    return await copySqlite(databaseOf(config.data), file, { signal, progress });
  }
  const folder = join(dirname(file), 'rows');
  makeFolder(folder);
  await rename(await copyRows(source, folder, { migrations, signal, progress }), file);
}

async function readKeys(data: string): Promise<Map<string, string>> {
  // Their form and mode.
  await loadKeys(data);
  const keys = new Map<string, string>();
  for (const name of keyFiles) {
    keys.set(name, await readFile(join(keyFolder(data), name), 'utf8'));
  }
  return keys;
}

async function addManifest(
  file: string,
  { config, signal, progress, now }: BackUpOptions,
  keys: ReadonlyMap<string, string>,
): Promise<Manifest> {
  const connection = new SqliteConnection(file, { readOnly: false });
  try {
    const read = pausing((work) => work(readerOf(connection)), signal);
    // The mark of an earlier move is about the place of the database, not about its content.
    connection.run(`DELETE FROM ${moveTable}`, []);
    const tables: Record<string, TableDigest> = {};
    for (const table of await readTables({ read, catalogueSql: sqliteCatalogue })) {
      const { total } = connection.get(`SELECT COUNT(*) AS total FROM "${table.name}"`, []) as {
        total: number;
      };
      tables[table.name] = await digestTable(table, read, (done) =>
        progress?.({ step: `reading ${table.name}`, done, total }),
      );
    }
    const facts = new Map(
      connection
        .all('SELECT name, value FROM relay_facts', [])
        .map(({ name, value }) => [String(name), String(value)]),
    );
    const applied = await read((tx) => readApplied(tx));
    const manifest = {
      relay: facts.get('relay') ?? '',
      network: facts.get('network') ?? '',
      service: facts.get('service') ?? '',
      created_at: now,
      engine: config.storage.engine,
      schema: applied.map(({ id }) => id),
      tables,
      keys: Object.fromEntries([...keys].map(([name, text]) => [name, sha256(text)])),
    };
    const { text, digest } = manifestText(manifest);
    connection.execute(`BEGIN;
      CREATE TABLE ${keysTable} (name TEXT NOT NULL PRIMARY KEY, content TEXT NOT NULL);
      CREATE TABLE ${manifestTable} (manifest TEXT NOT NULL, digest TEXT NOT NULL);`);
    for (const [name, content] of keys) {
      connection.run(`INSERT INTO ${keysTable} (name, content) VALUES (?, ?)`, [name, content]);
    }
    connection.run(`INSERT INTO ${manifestTable} (manifest, digest) VALUES (?, ?)`, [text, digest]);
    connection.execute('COMMIT');
    return JSON.parse(text) as Manifest;
  } finally {
    connection.close();
  }
}

function readerOf(connection: SqliteConnection): Reader {
  return {
    get: async <T extends Row>(sql: string, ...values: (string | number | null)[]) =>
      connection.get(sql, values) as T | undefined,
    all: async <T extends Row>(sql: string, ...values: (string | number | null)[]) =>
      connection.all(sql, values) as T[],
  };
}
