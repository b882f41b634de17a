/** New files for people: written whole or not at all, and never in place of another file. */
import { randomBytes } from 'node:crypto';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { UsageError } from './exit.ts';

/**
 * Writes a file that does not exist yet, readable by its owner only. It gets its name after its bytes
 * are on the disk: if that fails or the machine stops, no part of the file stays under this name. On a
 * file system without links, an empty file may stay if the machine stops in between.
 *
 * @param option the option that named the file, for the message
 * @throws UsageError
 */
export async function writeNew(
  path: string,
  content: Parameters<FileHandle['writeFile']>[0],
  option: string,
): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.part`;
  try {
    {
      await using file = await open(draft, 'wx', 0o600);
      await file.writeFile(content);
      await file.sync();
    }
    await moveNew(draft, path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `${option}: ${code === 'EEXIST' ? `${path} exists: choose another name` : message}`,
    );
  } finally {
    await rm(draft, { force: true });
  }
}

/** Gives a file a name that no file has. */
async function moveNew(draft: string, path: string): Promise<void> {
  try {
    // Unlike a rename, a link replaces no file.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    // This file system has no links: the name is taken first.
    await (await open(path, 'wx', 0o600)).close();
    await rename(draft, path).catch(async (failure: unknown) => {
      await rm(path);
      throw failure;
    });
  }
}
