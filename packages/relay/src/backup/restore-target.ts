/** The folder that a backup is restored to: what it may have in it, its lock, the database before. */
import { existsSync, rmSync } from 'node:fs';
import { readdir, rename, rmdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { restoringFile } from '../storage/restoring.ts';
import { databaseFiles, databaseOf, lockFolder, removeDatabase } from '../storage/sqlite/folder.ts';
import { flush } from './files.ts';
import { BackupError } from './manifest.ts';

/**
 * - `new`: absent or empty, or left by a restore that did not end;
 * - `data`: a relay's folder without a database, with keys and other files of it;
 * - `replaced`: as `data`, and the database that it has is put aside.
 */
export type TargetKind = 'new' | 'data' | 'replaced';

interface Target {
  readonly to: string;
  readonly kind?: TargetKind;
}

/** The copy of the backup, until it was checked. */
export const copyName = 'relay.sqlite.part';

/** The folder in the data folder in which the database of before is kept. */
const asideName = 'replaced';

/** @throws BackupError if the folder has what would be lost, or would be mistaken for the relay's */
export async function checkTarget({ to, kind = 'new' }: Target): Promise<void> {
  const names = existsSync(to) ? await readdir(to) : [];
  if (names.includes(restoringFile)) return;
  if (kind === 'new' && !names.every(isHarmless)) {
    throw new BackupError(`${to} is not empty: give a folder that is empty or does not exist`);
  }
  if (kind === 'data' && names.includes(basename(databaseOf(to)))) {
    throw new BackupError(`${to} has a database already: give --replace to put it aside`);
  }
  if (kind === 'replaced' && names.includes(asideName)) {
    throw new BackupError(
      `${join(to, asideName)} has the database of before an earlier restore: move it away, or ` +
        'remove it',
    );
  }
}

/** What a file system, or a command that was killed, leaves in a folder without a database. */
function isHarmless(name: string): boolean {
  return name === 'lost+found' || name.startsWith('lock') || name.startsWith(copyName);
}

/** A locked folder. */
interface LockedTarget extends Disposable {
  /** Whether it did not exist before. */
  readonly isNew: boolean;
  /** Removes the folder, unless it has something in it. */
  remove(): Promise<void>;
}

/** Makes and locks the folder. @throws BackupError if a relay or another command uses it */
export function lockTarget(to: string): LockedTarget {
  const isNew = !existsSync(to);
  makeFolder(to);
  let lock: ReturnType<typeof lockFolder>;
  try {
    lock = lockFolder(to);
  } catch (error) {
    if (!/is in use/.test((error as Error).message)) throw error;
    throw new BackupError(`${to} is in use by a relay or another command: stop it first`);
  }
  let isOpen = true;
  const close = () => {
    if (isOpen) lock.close();
    isOpen = false;
  };
  return {
    isNew,
    async remove() {
      close();
      for (const suffix of ['', '-journal']) rmSync(join(to, `lock${suffix}`), { force: true });
      await rmdir(to).catch(() => undefined);
    },
    [Symbol.dispose]: close,
  };
}

/** Removes what an unfinished restore left, or puts the relay's database aside. */
export async function clearTarget({ to, kind = 'new' }: Target): Promise<void> {
  const aside = join(to, asideName);
  const isAside = existsSync(databaseOf(aside));
  if (kind === 'replaced' && !isAside && existsSync(databaseOf(to))) {
    makeFolder(aside);
    // The database last: it says that all of it is there.
    for (const path of databaseFiles(to).reverse()) {
      if (existsSync(path)) await rename(path, join(aside, basename(path)));
    }
    await flush(aside);
    await flush(to);
  }
  removeDatabase(to);
}
