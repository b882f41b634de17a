import { stat } from 'node:fs/promises';
import { dataFolderOpen } from '../observability/storage-events.ts';
import { keyFolder } from './keys.ts';

/** Permission bits of a folder that let users other than its owner write in it, or enter it. */
const writableByAll = 0o002;
const openToOthers = 0o077;
/** Only the owner of a file may replace it: the mode of a file system that was just mounted. */
const sticky = 0o1000;

/**
 * Refuses a data folder in which every user of the machine could replace files, and logs a warning if
 * others can enter it: keys and database have a mode of their own, and an operator may share the
 * registry file or the development authority.
 *
 * @throws Error with the folder and what to do
 */
export async function checkDataFolder(
  dataFolder: string,
  observed: Parameters<typeof dataFolderOpen>[0],
): Promise<void> {
  for (const folder of [dataFolder, keyFolder(dataFolder)]) {
    const mode = await permissionsOf(folder);
    if (mode === undefined) continue;
    const found = mode.toString(8).padStart(4, '0');
    if ((mode & writableByAll) !== 0 && (mode & sticky) === 0) {
      throw new Error(
        `${folder}: every user of this machine can write in it (mode ${found}): run \`chmod 700 ${folder}\``,
      );
    }
    if ((mode & openToOthers) !== 0) dataFolderOpen(observed, { folder, mode: found });
  }
}

/** Returns the permission bits; `undefined` if there is no such folder. */
async function permissionsOf(folder: string): Promise<number | undefined> {
  try {
    return (await stat(folder)).mode & 0o1777;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
