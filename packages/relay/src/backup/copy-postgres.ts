/** A PostgreSQL database copied to a SQLite file, from one snapshot. */
import { rm } from 'node:fs/promises';
import { migrate, migrationsTable, readApplied } from '../storage/migrations.ts';
import { moveTable } from '../storage/move/mark.ts';
import {
  countRows,
  insertRows,
  type Key,
  readBatch,
  readTables,
  type Table,
} from '../storage/move/rows.ts';
import { SqliteConnection } from '../storage/sqlite/connection.ts';
import { openSqlite } from '../storage/sqlite/storage.ts';
import type { Migration, Reader, Storage } from '../storage/types.ts';
import type { BackupWork } from './backup-file.ts';

export interface CopyOptions extends BackupWork {
  readonly migrations: readonly Migration[];
}

/**
 * Copies all rows of a database into a new SQLite database in `folder`.
 * @returns the path of the file
 */
export async function copyRows(
  source: Storage,
  folder: string,
  options: CopyOptions,
): Promise<string> {
  const tables = (await readTables(source)).filter(({ name }) => name !== moveTable);
  // The snapshot is read again from the beginning if the server was lost for a moment.
  await source.read(async (tx) => {
    await rm(folder, { recursive: true, force: true });
    await using target = openSqlite(folder);
    await migrate(target, options.migrations, 0);
    const applied = await readApplied(tx);
    await target.write('relay', async (writer) => {
      for (const { id, applied_at } of applied) {
        await writer.run(
          `UPDATE ${migrationsTable} SET applied_at = ? WHERE id = ?`,
          applied_at,
          id,
        );
      }
    });
    for (const table of tables) {
      if (table.name !== migrationsTable) await copyTable(tx, target, { table, ...options });
    }
  });
  const file = `${folder}/relay.sqlite`;
  const connection = new SqliteConnection(file, { readOnly: false });
  // One file, without a log next to it.
  connection.get('PRAGMA journal_mode=DELETE', []);
  connection.close();
  return file;
}

async function copyTable(
  tx: Reader,
  target: Storage,
  { table, signal, progress }: { readonly table: Table } & BackupWork,
): Promise<void> {
  const total = await countRows(tx, table);
  let after: Key | undefined;
  let done = 0;
  do {
    signal?.throwIfAborted();
    const batch = await readBatch(tx, table, after);
    if (batch.rows.length > 0) {
      await target.write('relay', (writer) => insertRows(writer, table, batch.rows));
    }
    done += batch.rows.length;
    after = batch.last;
    progress?.({ step: `copying ${table.name}`, done, total });
  } while (after !== undefined);
}
