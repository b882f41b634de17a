import { statSync } from 'node:fs';
import { SqliteConnection } from './connection.ts';
import { settleLog } from './settle-log.ts';

/**
 * Milliseconds for which the thread waits for the lock of a process that is closing the database: only
 * here.
 */
const lockTimeout = 5_000;
/**
 * The writer's page cache in KiB. A batch that changes more pages writes some of them to the log twice;
 * each COMMIT looks through the whole cache.
 */
const writerCache = 16_384;

/**
 * Where SQLite stores the undo pages of savepoints. On disk, a batch would write each changed page
 * there once per savepoint, in addition to the log.
 */
export const undoInMemory = 'PRAGMA temp_store=MEMORY';
export const undoOnDisk = 'PRAGMA temp_store=FILE';

/**
 * Lets a new database give unused pages back to the disk. One that exists already is changed by the
 * next VACUUM.
 */
export const givesBack = 'PRAGMA auto_vacuum=INCREMENTAL';

/**
 * How commits become durable: `commit` flushes in each COMMIT; `pool` leaves that to a `WalFlush`, and
 * SQLite flushes only what keeps the database whole.
 */
export const synchronous = {
  commit: 'PRAGMA synchronous=FULL',
  pool: 'PRAGMA synchronous=NORMAL',
} as const;

/** Opens the one connection that writes. */
export function openWriter(path: string, flushes: keyof typeof synchronous): SqliteConnection {
  const connection = new SqliteConnection(path, { readOnly: false, lockTimeout });
  try {
    // For a database that gives back already, SQLite would write its header again.
    if (statSync(path).size === 0) connection.execute(givesBack);
    connection.execute('PRAGMA journal_mode=WAL');
    connection.execute(synchronous[flushes]);
    connection.execute(`PRAGMA cache_size=-${writerCache}`);
    connection.execute(undoInMemory);
    // Opens the log and its index, for which there may be no room.
    connection.get('SELECT count(*) AS tables FROM sqlite_schema', []);
    if (flushes === 'pool') settleLog(connection, path);
    connection.execute('PRAGMA busy_timeout=0');
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}
