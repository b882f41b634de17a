/** The relay's keys in a backup, and in the folder to which it is restored. */
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keyFiles, keyFolder } from '../keys/keys.ts';
import { makeFolder } from '../make-folder.ts';
import { flush } from './files.ts';
import { BackupError } from './manifest.ts';

type Keys = ReadonlyMap<string, string>;

/** @throws BackupError if a name is unknown, or the folder has another key: keys are never replaced */
export async function checkKeys(folder: string, keys: Keys): Promise<void> {
  for (const [name, content] of keys) {
    // A name in a file may be anything.
    if (!keyFiles.includes(name)) throw new BackupError(`the backup has an unknown key ${name}`);
    const path = join(keyFolder(folder), name);
    if (!existsSync(path) || (await readFile(path, 'utf8')) === content) continue;
    throw new BackupError(
      `${path} is another key than that of the backup: move ${keyFolder(folder)} away, or use a ` +
        'backup of this relay',
    );
  }
}

/** Writes the keys that the folder does not have. @throws BackupError as {@link checkKeys} */
export async function writeKeys(folder: string, keys: Keys): Promise<void> {
  await checkKeys(folder, keys);
  if (keys.size === 0) return;
  makeFolder(keyFolder(folder));
  for (const [name, content] of keys) {
    const path = join(keyFolder(folder), name);
    // Whole or not at all: a key that was cut off would be taken for another one.
    if (!existsSync(path)) await writeWhole(path, content);
  }
  await flush(keyFolder(folder));
}

async function writeWhole(path: string, content: string): Promise<void> {
  await writeFile(`${path}.part`, content, { mode: 0o600, flush: true });
  await rename(`${path}.part`, path);
}
