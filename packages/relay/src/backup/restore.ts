/** Makes a relay's database from a backup, in a new folder or in that of a relay. */
import { copyFile, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { migrate, pendingMigrations } from '../storage/migrations.ts';
import { markRestored, type RestoredStep } from '../storage/restored.ts';
import { restoringFile } from '../storage/restoring.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import { databaseOf } from '../storage/sqlite/folder.ts';
import { openSqlite } from '../storage/sqlite/storage.ts';
import type { Migration } from '../storage/types.ts';
import { BackupFile, type BackupWork } from './backup-file.ts';
import { flush, onDiskOf, requireRoom } from './files.ts';
import { BackupError, keysTable, type Manifest, manifestTable } from './manifest.ts';
import {
  checkTarget,
  clearTarget,
  copyName,
  lockTarget,
  type TargetKind,
} from './restore-target.ts';
import { checkKeys, writeKeys } from './restored-keys.ts';
import { unknownMigration } from './schema.ts';

export interface RestoreOptions extends BackupWork {
  /** Path of the backup. */
  readonly from: string;
  /** The data folder. */
  readonly to: string;
  /** What it may have in it; `new` by default. */
  readonly kind?: TargetKind;
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
  /** Rows that the backup had. */
  readonly rows: number;
  readonly hasKeys: boolean;
}

/**
 * Restores a backup to a folder, which is locked meanwhile. The backup is copied to it first; nothing
 * else is changed before all of the copy was read and compared with its digests. From then until the
 * end the folder has a file that keeps every relay from starting on it; after an interruption the same
 * restore can be run again.
 *
 * @throws BackupError that ends in what to do; the reason of the signal
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const { from, to, signal } = options;
  {
    using file = new BackupFile(from);
    checkKind(file, options);
  }
  await checkTarget(options);
  requireRoom(to, (await stat(from)).size * roomFactor, 'the database');
  using target = lockTarget(to);
  // Another command, or a relay, may have come in between.
  await checkTarget(options);
  return await onDiskOf(to, async () => {
    const checked = await copyChecked(options).catch(async (error: unknown) => {
      await rm(join(to, copyName), { force: true });
      if (target.isNew) await target.remove();
      throw error;
    });
    signal?.throwIfAborted();
    return await fill(checked, options);
  });
}

/** Of the backup's size: the raise of sequences, and its log. */
const roomFactor = 1.1;

/** What is used of a backup besides its tables. */
interface Checked {
  readonly manifest: Manifest;
  readonly keys: ReadonlyMap<string, string>;
}

/** Copies the backup into the folder, and checks the copy: the file may be another one by then. */
async function copyChecked(options: RestoreOptions): Promise<Checked> {
  const { from, to, migrations, progress } = options;
  const copy = join(to, copyName);
  await rm(copy, { force: true });
  progress?.({ step: 'copying', done: 0, total: 1 });
  await (await open(copy, 'wx', 0o600)).close();
  await copyFile(from, copy);
  progress?.({ step: 'copying', done: 1, total: 1 });
  using file = new BackupFile(copy, from);
  checkKind(file, options);
  await file.check(migrations, options);
  const keys = file.keys();
  await checkKeys(to, keys);
  return { manifest: file.manifest, keys };
}

function checkKind(file: BackupFile, { expected, migrations, now }: RestoreOptions): void {
  const { manifest } = file;
  for (const name of ['network', 'service'] as const) {
    const wanted = expected[name];
    if (wanted === undefined || wanted === manifest[name]) continue;
    throw new BackupError(
      `${file.path} is of the ${name} ${manifest[name]}, not ${wanted}: correct --${name} or the ` +
        'configuration, or use another backup',
    );
  }
  // Clients learn of a restore by its time.
  if (now < manifest.created_at) {
    const made = new Date(manifest.created_at * 1_000).toISOString();
    throw new BackupError(
      `${file.path} was made at ${made}, which is later than the clock of this machine: set the clock`,
    );
  }
  const newer = unknownMigration(manifest, migrations);
  if (newer === undefined) return;
  throw new BackupError(
    `${file.path} was made by a newer version of posthouse (it has migration ${newer}): restore it ` +
      'with that version, or a later one',
  );
}

async function fill({ manifest, keys }: Checked, options: RestoreOptions): Promise<RestoreResult> {
  const { from, to, migrations, statements, now, reach, signal, progress } = options;
  const marker = join(to, restoringFile);
  await writeFile(marker, `from ${from}\n`, { mode: 0o600, flush: true });
  await flush(to);
  reach?.('marked');
  await clearTarget(options);
  const database = databaseOf(to);
  await rename(join(to, copyName), database);
  reach?.('copied');
  signal?.throwIfAborted();
  dropTables(database);
  const step = (name: string, done: number) => progress?.({ step: name, done, total: 1 });
  const { relay, created_at: createdAt } = manifest;
  // Later than what the backup knows, also if two are restored in one second.
  const at = Math.max(now, createdAt + 1);
  const restoredAt = await raise(to, { migrations, statements, now: at, step });
  reach?.('raised');
  await writeKeys(to, keys);
  reach?.('keys');
  await flush(database);
  await flush(to);
  reach?.('flushed');
  signal?.throwIfAborted();
  await rm(marker);
  await flush(to);
  reach?.('done');
  const rows = Object.values(manifest.tables).reduce((sum, table) => sum + table.rows, 0);
  return { relay, createdAt, restoredAt, rows, hasKeys: keys.size > 0 };
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
