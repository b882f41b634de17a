/** The start of a newer relay on an older database: says what changes, copies, then migrates. */
import { once } from 'node:events';
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { RelayConfig } from '../config/index.ts';
import type { RelayContext } from '../context.ts';
import { databaseUpgraded, upgradeBegins } from '../observability/upgrade-events.ts';
import { freeBytes, megabytes } from './free-bytes.ts';
import { migrate, migrationsTable, pendingMigrations } from './migrations.ts';
import { databaseOf, privateFile } from './sqlite/folder.ts';
import type { Migration, Row } from './types.ts';

/** Where an upgrade is recorded: the log of a relay, or what a command prints. */
export type UpgradeLog = Pick<RelayContext['log'], 'info' | 'warn'>;

interface UpgradeContext {
  readonly storage: RelayContext['storage'];
  readonly clock: Pick<RelayContext['clock'], 'now'>;
  readonly log: UpgradeLog;
}

/**
 * Applies the migrations that the database lacks. If it has data of an older relay, the log has from
 * where to where it is brought, and what the operator has to know; an embedded database is copied
 * before into the data folder, as `before-schema-<number>.sqlite`.
 *
 * @throws Error as {@link migrate}, and if the copy cannot be made: nothing has changed then
 */
export async function upgradeDatabase(
  context: UpgradeContext,
  {
    data,
    storage: { engine },
    copyBeforeUpgrade,
  }: Pick<RelayConfig, 'copyBeforeUpgrade' | 'data' | 'storage'>,
  migrations: readonly Migration[],
): Promise<void> {
  const { storage, clock } = context;
  const columns = await storage.read((tx) => tx.all<ColumnRow>(storage.catalogueSql));
  const isNew = !columns.some((column) => column.table_name === migrationsTable);
  const missing = isNew ? [] : await pendingMigrations(storage, migrations);
  if (missing.length > 0) {
    const to = migrations.length;
    upgradeBegins(context, { from: to - missing.length, to, missing });
    if (engine === 'sqlite' && copyBeforeUpgrade) {
      const path = join(data, `before-schema-${to}.sqlite`);
      const { bytes, unused } = await storage.space();
      requireRoom(path, bytes - unused);
      await copyDatabase(databaseOf(data), path);
      context.log.warn(
        { path },
        'the database as it was; remove the copy when all is well. To go back to it, run ' +
          '`posthouse restored` before the start',
      );
    }
  }
  await migrate(storage, migrations, clock.now());
  if (missing.length > 0) databaseUpgraded(context, missing);
}

interface ColumnRow extends Row {
  table_name: string;
}

/** @throws Error that says how much room is needed */
function requireRoom(path: string, bytes: number): void {
  const free = freeBytes(dirname(path));
  if (free >= bytes) return;
  throw new Error(
    `the database must be upgraded, and the copy before needs about ${megabytes(bytes)} MB at ` +
      `${path}, where ${megabytes(free)} MB are free. Make room, or set copyBeforeUpgrade to false if ` +
      'there is a backup',
  );
}

/** Runs in a thread: a large database takes minutes. */
const program = `
  const { DatabaseSync } = require('node:sqlite');
  const { from, to } = require('node:worker_threads').workerData;
  const database = new DatabaseSync(from, { readOnly: true, timeout: 5_000 });
  database.prepare('VACUUM INTO ?').run(to);
  database.close();
`;

/** Copies a snapshot of a database; the file is there whole or not at all, for its user alone. */
async function copyDatabase(from: string, to: string): Promise<void> {
  const part = `${to}.part`;
  rmSync(part, { force: true });
  try {
    const thread = new Worker(program, {
      eval: true,
      workerData: { from, to: privateFile(part) },
    });
    await once(thread, 'exit');
    flush(part);
    renameSync(part, to);
  } catch (error) {
    rmSync(part, { force: true });
    throw new Error(
      `the database must be upgraded and could not be copied to ${to} before: ${(error as Error).message}. ` +
        'Make room, or set copyBeforeUpgrade to false if there is a backup',
      { cause: error },
    );
  }
}

function flush(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
