/**
 * Space for starting on a full disk: SQLite needs some to open a database, even for reading, after
 * its journals were removed at a clean stop.
 */
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { failureKind } from './failures.ts';

/** Bytes of the reserve: the index of the log needs 32 KiB; the rest is for a few writes. */
const reserveBytes = 1_048_576;

/** Opens a database. If the disk has no room for that, removes the reserve and tries once more. */
export function openWithReserve<T>(reserve: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!mayLackSpace(error) || !releaseReserve(reserve)) throw error;
    return open();
  }
}

/** Whether SQLite, or the system when the log is written again, may have had no room. */
function mayLackSpace(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return ['full', 'failing'].includes(failureKind(error)) || code === 'ENOSPC' || code === 'EDQUOT';
}

/** Creates the reserve unless it is there; without room for it, the relay runs without one. */
export function keepReserve(reserve: string): void {
  try {
    if (statSync(reserve, { throwIfNoEntry: false })?.size === reserveBytes) return;
    // Bytes that are not zero: no file system leaves them out.
    writeFileSync(reserve, Buffer.alloc(reserveBytes, 1), { mode: 0o600 });
  } catch {
    releaseReserve(reserve);
  }
}

function releaseReserve(reserve: string): boolean {
  try {
    rmSync(reserve);
    return true;
  } catch {
    return false;
  }
}
