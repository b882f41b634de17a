/** Makes a relay's data folder from a backup. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keyFiles, keyFolder } from '../keys/keys.ts';
import { migrate, pendingMigrations } from '../storage/migrations.ts';
import { markRestored, type RestoredStep } from '../storage/restored.ts';
import { restoringFile } from '../storage/restoring.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import { databaseOf } from '../storage/sqlite/folder.ts';
import { openSqlite } from '../storage/sqlite/storage.ts';
import type { Migration } from '../storage/types.ts';
import { BackupFile, type BackupWork } from './backup-file.ts';
import { flush, onDiskOf } from './files.ts';
import { BackupError, keysTable, manifestTable } from './manifest.ts';
import { unknownMigration } from './schema.ts';

export interface RestoreOptions extends BackupWork {
  /** Path of the backup. */
  readonly from: string;
  /** The data folder to be made: absent, empty, or left by a restore that did not end. */
  readonly to: string;
  /** Every migration of the relay. */
  readonly migrations: readonly Migration[];
  /** `restoredStatements` of the modules. */
  readonly statements: readonly RestoredStep[];
  /** What the relay must be, if the caller knows it. */
  readonly expected: {
    readonly network?: string | undefined;
    readonly service?: string | undefined;
  };
  /** Unix seconds. */
  readonly now: number;
  /** Called before each step that changes the folder, for tests. */
  readonly reach?: ((step: RestoreStep) => void) | undefined;
}

/** The steps that change the folder, in their order. */
export const restoreSteps = ['marked', 'copied', 'raised', 'keys', 'flushed', 'done'] as const;
type RestoreStep = (typeof restoreSteps)[number];

export interface RestoreResult {
  readonly relay: string;
  readonly createdAt: number;
  readonly restoredAt: number;
  readonly hasKeys: boolean;
}

/**
 * Restores a backup to a folder. Nothing is written before all of the file was read and compared with
 * its digests. Until the end the folder has a file that keeps every relay from starting on it; after an
 * interruption the same restore can be run again.
 *
 * @throws BackupError that ends in what to do; the reason of the signal
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { from, to, signal } = options;
  using file = new BackupFile(from);
  checkKind(file, options);
  await checkFolder(to);
  await file.check(options);
  signal?.throwIfAborted();
  await mkdir(to, { recursive: true, mode: 0o700 });
  return await onDiskOf(to, () => fill(file, options));
}

function checkKind(file: BackupFile, { expected, migrations }: RestoreOptions): void {
  const { manifest } = file;
  for (const name of ['network', 'service'] as const) {
    const wanted = expected[name];
    if (wanted === undefined || wanted === manifest[name]) continue;
    throw new BackupError(
      `${file.path} is of the ${name} ${manifest[name]}, not ${wanted}: correct --${name}, or use ` +
        'another backup',
    );
  }
  const newer = unknownMigration(manifest, migrations);
  if (newer === undefined) return;
  throw new BackupError(
    `${file.path} was made by a newer version of posthouse (it has migration ${newer}): restore it ` +
      'with that version, or a later one',
  );
}

/** @throws BackupError if the folder has anything that no unfinished restore left */
async function checkFolder(to: string): Promise<void> {
  const names = existsSync(to) ? await readdir(to) : [];
  if (names.length === 0 || names.includes(restoringFile)) return;
  throw new BackupError(`${to} is not empty: give a folder that is empty or does not exist`);
}

async function fill(file: BackupFile, options: RestoreOptions): Promise<RestoreResult> {
  const { from, to, migrations, statements, now, reach, signal, progress } = options;
  const marker = join(to, restoringFile);
  await writeFile(marker, `from ${from}\n`, { mode: 0o600, flush: true });
  await flush(to);
  reach?.('marked');
  for (const name of await readdir(to)) {
    if (name !== restoringFile) await rm(join(to, name), { recursive: true });
  }
  const database = databaseOf(to);
  const step = (name: string, done: number) => progress?.({ step: name, done, total: 1 });
  step('copying', 0);
  await copyPrivate(from, database);
  step('copying', 1);
  reach?.('copied');
  signal?.throwIfAborted();
  dropTables(database);
  const restoredAt = await raise(to, { migrations, statements, now, step });
  reach?.('raised');
  const keys = file.keys();
  await writeKeys(to, keys);
  reach?.('keys');
  await flush(database);
  await flush(to);
  reach?.('flushed');
  signal?.throwIfAborted();
  await rm(marker);
  await flush(to);
  reach?.('done');
  const { relay, created_at: createdAt } = file.manifest;
  return { relay, createdAt, restoredAt, hasKeys: keys.size > 0 };
}

async function copyPrivate(from: string, to: string): Promise<void> {
  await (await open(to, 'wx', 0o600)).close();
  await copyFile(from, to);
}

/** Removes what is in a backup and not in a relay's database; the keys leave no trace in free pages. */
function dropTables(database: string): void {
  const connection = new SqliteConnection(database, { readOnly: false });
  try {
    connection.execute(`PRAGMA secure_delete=ON;
      DROP TABLE ${keysTable};
      DROP TABLE ${manifestTable};`);
  } finally {
    connection.close();
  }
}

async function raise(
  folder: string,
  {
    migrations,
    statements,
    now,
    step,
  }: Pick<RestoreOptions, 'migrations' | 'statements' | 'now'> & {
    readonly step: (name: string, done: number) => void;
  },
): Promise<number> {
  await using storage = openSqlite(folder, undefined, undefined, { isRestoring: true });
  step('migrating', 0);
  if ((await pendingMigrations(storage, migrations)).length > 0) {
    await migrate(storage, migrations, now);
  }
  step('migrating', 1);
  step('raising sequences', 0);
  const restoredAt = await markRestored(storage, statements, now);
  step('raising sequences', 1);
  return restoredAt;
}

async function writeKeys(folder: string, keys: ReadonlyMap<string, string>): Promise<void> {
  if (keys.size === 0) return;
  await mkdir(keyFolder(folder), { mode: 0o700 });
  for (const [name, content] of keys) {
    // A name in a file may be anything.
    if (!keyFiles.includes(name)) throw new BackupError(`the backup has an unknown key ${name}`);
    await writeFile(join(keyFolder(folder), name), content, { mode: 0o600, flush: true });
  }
  await flush(keyFolder(folder));
}
