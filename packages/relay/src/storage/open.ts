import type { RelayConfig } from '../config/index.ts';
import { migrationsTable, pendingMigrations } from './migrations.ts';
import { checkInService, requireInService } from './move/mark.ts';
import type { PostgresObserver } from './postgres/observer.ts';
import type { PostgresOptions } from './postgres/storage.ts';
import type { PostgresTimeouts } from './postgres/timeouts.ts';
import type { SqliteObserver } from './sqlite/failures.ts';
import { openSqlite, openSqliteAlongside } from './sqlite/storage.ts';
import type { Migration, Row, Storage, StorageFaults, Upcoming } from './types.ts';

/**
 * Opens the storage of a relay process.
 *
 * @throws Error if another process holds a lock that excludes this one, or it cannot be reached
 */
export async function openStorage(
  { data, storage, bus }: Pick<RelayConfig, 'data' | 'storage' | 'bus'>,
  parts: {
    readonly faults?: StorageFaults | undefined;
    readonly observer: PostgresObserver & SqliteObserver;
    readonly upcoming?: Upcoming | undefined;
  },
): Promise<Storage> {
  const { faults, observer, upcoming } = parts;
  if (storage.engine === 'sqlite') return openSqlite(data, faults, observer, { upcoming });
  return await openPostgres({
    url: storage.url,
    connections: storage.connections,
    lockMode: bus.nats === '' ? 'alone' : 'together',
    ...{ faults, observer },
  });
}

/** Loads the client of PostgreSQL, which a relay on SQLite never needs, and opens the database. */
async function openPostgres(options: PostgresOptions): Promise<Storage> {
  const postgres = await import('./postgres/storage.ts');
  return await postgres.openPostgres(options);
}

/** Connections of a command to PostgreSQL: it runs one transaction at a time. */
const commandConnections = 2;

/**
 * Opens a relay's storage for an operator's command, whether the relay runs or not. While it is open,
 * no move can start on PostgreSQL; on SQLite, it writes nothing after a move has started. Does not change
 * the schema.
 *
 * @param migrations of this version; the database must have exactly these
 * @param timeouts of PostgreSQL, if the command takes longer than a relay's calls
 * @throws Error with a sentence for operators
 */
export async function openAlongside(
  { data, storage }: Pick<RelayConfig, 'data' | 'storage'>,
  migrations: readonly Migration[],
  timeouts?: Partial<PostgresTimeouts>,
): Promise<Storage> {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(
    storage.engine === 'sqlite'
      ? // A move may have begun since: nothing keeps it from starting.
        openSqliteAlongside(data, requireInService)
      : await openPostgres({
          url: storage.url,
          connections: commandConnections,
          lockMode: 'alongside',
          timeouts,
        }),
  );
  await checkVersion(database, migrations);
  opened.move();
  return database;
}

async function checkVersion(storage: Storage, migrations: readonly Migration[]): Promise<void> {
  const columns = await storage.read((tx) => tx.all<ColumnRow>(storage.catalogueSql));
  if (!columns.some((column) => column.table_name === migrationsTable)) {
    throw new Error('no relay has used the database yet: start the relay on it once');
  }
  await checkInService(storage);
  const [missing] = await pendingMigrations(storage, migrations);
  if (missing === undefined) return;
  throw new Error(
    `the database is older than this command: it lacks migration ${missing.id} ` +
      `(${missing.name}). Start the relay of this version once`,
  );
}

interface ColumnRow extends Row {
  table_name: string;
}
