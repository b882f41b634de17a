import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Bits of a mode: others may write; only owners remove what is in a folder. */
const writableByOthers = 0o002;
const sticky = 0o1000;

/**
 * Checks that a program can be run, and that not every user of the machine can put another one in its
 * place: it runs with the rights of the relay, and can read its keys.
 *
 * @param path absolute
 * @throws Error with what to do
 */
export async function requireProgram(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || !found.isFile()) {
    throw new Error(`${path}: there is no such program: correct the path`);
  }
  await access(path, constants.X_OK).catch(() => {
    throw new Error(`${path}: the relay's user may not run it: make it executable (chmod 755)`);
  });
  const folder = dirname(path);
  const { mode } = await stat(folder);
  const open = (bits: number) => (bits & writableByOthers) !== 0;
  if (open(found.mode)) throw new Error(replaceable(path));
  if (open(mode) && (mode & sticky) === 0) throw new Error(replaceable(folder));
}

const replaceable = (path: string) =>
  `${path}: every user of this machine can change it, and the relay runs the program: chmod o-w ${path}`;
