import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and its missing parents, for this user alone; leaves an existing one as it is.
 *
 * One at a time: Node's own recursive `mkdir` tries for ever if a file system lists a parent and has
 * no entries for new folders, as `/proc/sys`.
 *
 * @throws Error of the system, with the path
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; !isFolder(at); at = dirname(at)) missing.unshift(at);
  for (const one of missing) {
    try {
      mkdirSync(one, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it meanwhile.
      if (!isFolder(one)) throw error;
    }
  }
}

/** @throws Error ENOTDIR, if a file has the name */
function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (found.isDirectory()) return true;
  throw Object.assign(new Error(`ENOTDIR: not a directory, mkdir '${path}'`), {
    ...{ code: 'ENOTDIR', syscall: 'mkdir', path },
  });
}
