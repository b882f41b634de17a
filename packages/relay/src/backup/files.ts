/** Files that are complete or absent: written under another name, flushed, renamed. */
import { existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { freeBytes, megabytes } from '../storage/free-bytes.ts';
import { failureKind } from '../storage/sqlite/failures.ts';
import { lockFolder } from '../storage/sqlite/folder.ts';
import { BackupError } from './manifest.ts';

/** A folder next to a file that is being made; it goes with what is in it. */
export interface PartialFolder extends AsyncDisposable {
  /** Path of the file in it that becomes the result. */
  readonly file: string;
  /** Flushes the file and moves it to its name; nothing can be written to it any more. */
  complete(): Promise<void>;
}

/**
 * Creates the folder `<target>.partial`. What a killed command left in it is removed.
 *
 * @throws BackupError if the target exists, or another command makes it
 */
export async function partialFolder(target: string): Promise<PartialFolder> {
  if (existsSync(target)) {
    throw new BackupError(`${target} exists already: give another name, or remove it`);
  }
  const folder = `${target}.partial`;
  makeOwnFolder(folder, basename(target));
  const lock = lockOf(folder);
  const remove = async () => {
    for (const name of await readdir(folder)) {
      if (!name.startsWith('lock')) await rm(join(folder, name), { recursive: true });
    }
  };
  await remove();
  const file = join(folder, basename(target));
  return {
    file,
    async complete() {
      await flush(file);
      if (existsSync(target)) {
        throw new BackupError(`${target} appeared meanwhile: give another name, or remove it`);
      }
      await rename(file, target);
      await flush(dirname(target));
    },
    async [Symbol.asyncDispose]() {
      lock.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Makes a folder that only this user can read, or takes over that of a killed command. In a folder
 * where others may write, one of them may have made it before.
 */
function makeOwnFolder(folder: string, file: string): void {
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
    return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const found = lstatSync(folder);
  const isOwn = found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
  const isOurs = (name: string) => ['lock', 'rows', file].some((one) => name.startsWith(one));
  if (found.isDirectory() && isOwn && readdirSync(folder).every(isOurs)) return;
  throw new BackupError(
    `${folder} was not made by posthouse for you: remove it, or give another name`,
  );
}

/** @throws BackupError if another command works in the folder */
function lockOf(folder: string) {
  try {
    return lockFolder(folder);
  } catch (error) {
    if (!/is in use/.test((error as Error).message)) throw error;
    throw new BackupError(`another command is writing ${folder}: wait until it ends`);
  }
}

/**
 * Checks that a disk has room for a file of about so many bytes.
 *
 * @param folder of the file; it, or a folder above it, exists
 * @throws BackupError that says how much is free, and how much is needed
 */
export function requireRoom(folder: string, bytes: number, what: string): void {
  const free = freeBytes(folder);
  if (free >= bytes) return;
  throw new BackupError(
    `the disk of ${folder} has ${megabytes(free)} MB free, and ${what} needs about ` +
      `${megabytes(bytes)} MB: make room there, or give another place`,
  );
}

/** Has the disk store a file or folder. */
export async function flush(path: string): Promise<void> {
  await using handle = await open(path, 'r');
  await handle.sync();
}

/** Runs work that writes to a folder's disk; a full disk becomes a plain error. */
export async function onDiskOf<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isFull(error)) throw error;
    throw new BackupError(
      `the disk of ${folder} is full (${megabytes(freeBytes(folder))} MB free): nothing was made; make room there, or ` +
        'give another place',
      { cause: error },
    );
  }
}

function isFull(error: unknown): boolean {
  for (let current = error; current instanceof Error; current = current.cause) {
    const { code, message } = current as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT' || failureKind(current) === 'full') return true;
    if (/database or disk is full/.test(message)) return true;
  }
  return false;
}
