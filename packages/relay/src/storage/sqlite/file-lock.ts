import { closeSync, constants, fchmodSync, fchownSync, fstatSync, openSync } from 'node:fs';
import { SqliteConnection } from './connection.ts';

/** Milliseconds to wait for the lock. */
const lockTimeout = 5_000;

/** User and group of a file. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Runs synchronous work while no other caller of this function, in this or another process, runs
 * work under the same lock file. Waits up to five seconds for the lock. The operating system releases
 * the lock if the process dies. The file is empty and stays, for its user alone: any other one who could
 * read it could hold it.
 *
 * @param owner whose the file is to be, if root runs the work
 * @throws Error if the file is of another user, or of SQLite if the lock is not free in time
 */
export function withFileLock<T>(lockFile: string, work: () => T, owner?: FileOwner): T {
  prepare(lockFile, owner);
  const lock = new SqliteConnection(lockFile, { readOnly: false, lockTimeout });
  try {
    lock.execute('PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE');
    return work();
  } finally {
    lock.close();
  }
}

/** Makes the file if there is none. A link is not followed: its target may be any file of root's. */
function prepare(lockFile: string, owner: FileOwner | undefined): void {
  const file = openLock(lockFile);
  try {
    const { uid, size } = fstatSync(file);
    const user = process.getuid?.();
    if (size > 0) throw new Error(`${lockFile}: a lock is empty: remove this file`);
    if (user === undefined || user === uid || user === 0) fchmodSync(file, 0o600);
    if (user === 0 && owner !== undefined) fchownSync(file, owner.uid, owner.gid);
  } finally {
    closeSync(file);
  }
}

function openLock(lockFile: string): number {
  const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants;
  try {
    return openSync(lockFile, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const causes: Record<string, string> = {
      EACCES: 'it is of another user: give it to the owner of the file that it locks, or remove it',
      ELOOP: 'it is a link: remove it',
    };
    const cause = causes[code ?? ''];
    throw cause === undefined ? error : new Error(`${lockFile}: ${cause}`, { cause: error });
  }
}
