/** How much room a disk has. */
import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Returns the bytes that this user may still write to the disk of a folder.
 * @param folder it, or a folder above it, exists
 */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(existingFolder(folder));
  return bavail * bsize;
}

/** Returns a folder, or, if it has still to be made, the nearest one above it that exists. */
export function existingFolder(folder: string): string {
  let at = folder;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

/** Returns bytes as whole megabytes, at least 1 unless there are none. */
export function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1e6);
}
