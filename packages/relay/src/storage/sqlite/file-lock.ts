import { SqliteConnection } from './connection.ts';
import { privateFile } from './folder.ts';

/** Milliseconds to wait for the lock. */
const lockTimeout = 5_000;

/**
 * Runs synchronous work while no other caller of this function, in this or another process, runs
 * work under the same lock file. Waits up to five seconds for the lock. The operating system releases
 * the lock if the process dies. The file is empty and stays, for its user alone: any other one who could
 * read it could hold it.
 *
 * @throws Error of SQLite if the lock is not free in time
 */
export function withFileLock<T>(lockFile: string, work: () => T): T {
  const lock = new SqliteConnection(privateFile(lockFile), { readOnly: false, lockTimeout });
  try {
    lock.execute('PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE');
    return work();
  } finally {
    lock.close();
  }
}
