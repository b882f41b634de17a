/** The files of a data folder. */
import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SqliteConnection } from './connection.ts';
import { failureKind } from './failures.ts';

/** Returns the path of the database in a data folder. */
export function databaseOf(directory: string): string {
  return join(directory, 'relay.sqlite');
}

/** Creates the file with mode 0600 before SQLite writes to it; its journals inherit the mode. */
export function privateFile(path: string): string {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  return path;
}

/** Removes the database of a data folder, if there is one, with what SQLite and the relay have next to it. */
export function removeDatabase(directory: string): void {
  for (const path of databaseFiles(directory)) rmSync(path, { force: true });
}

/** Returns the paths of the files that are one database, whether they exist or not. */
export function databaseFiles(directory: string): string[] {
  const path = databaseOf(directory);
  return [path, `${path}-wal`, `${path}-shm`, `${path}-journal`, generationFile(directory)];
}

/** Returns the path of the file with the number of a database's last transaction. */
export function generationFile(directory: string): string {
  return join(directory, 'generation');
}

/**
 * Locks the folder with an exclusive transaction on a separate database, which the operating system
 * releases if the process dies. The data's own locks must stay free for the readers.
 */
export function lockFolder(directory: string): SqliteConnection {
  const lock = new SqliteConnection(privateFile(join(directory, 'lock')), { readOnly: false });
  try {
    lock.execute('PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    // Any other code is a full disk or a broken file, not another process.
    if (failureKind(error) !== 'locked') throw error;
    throw new Error(`${directory} is in use by another relay process: stop it first`, {
      cause: error,
    });
  }
}

/**
 * Returns the path of the database in `directory`.
 *
 * @throws Error if there is none
 */
export function requireDatabase(directory: string): string {
  const path = databaseOf(directory);
  if (existsSync(path)) return path;
  const isRelay = existsSync(join(directory, 'keys'));
  const cure = isRelay
    ? 'no relay has used the folder yet: start the relay on it once'
    : 'check the setting `data`';
  throw new Error(`there is no relay.sqlite in ${directory}: ${cure}`);
}
