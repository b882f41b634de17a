/** A lock between processes: a SQLite file whose write lock is held. It ends with its process. */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { asStoreError, isSqliteError, sqliteBusy } from './sqlite-error.ts';

/** Milliseconds between two attempts. */
const interval = 200;

/**
 * Creates a file that only its owner may read, unless it exists. An existing file is not opened:
 * closing it would end all locks that this process holds on it (POSIX).
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Waits for the lock of a file, which is created. @throws the signal's reason */
export async function lockFile(
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<Disposable> {
  createPrivateFile(path);
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    for (;;) {
      signal.throwIfAborted();
      if (isLocked(database)) return { [Symbol.dispose]: () => database.close() };
      await sleep(interval, undefined, { signal });
    }
  } catch (error) {
    database.close();
    throw signal.aborted ? signal.reason : asStoreError(error);
  }
}

function isLocked(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (isSqliteError(error, sqliteBusy)) return false;
    throw error;
  }
}
