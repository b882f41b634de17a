/** The files of blobs: written under another name, flushed, renamed, and deleted. */
import { type FileHandle, open, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FairSlots } from '../fair-slots.ts';
import { makeFolder } from '../make-folder.ts';

/** The file that says whose blobs a folder has. */
const markFile = 'posthouse-blobs';

/** Ending of a file that is not complete. */
const partial = '.part';

/** A folder with one file for each blob, named as the blob. */
export class BlobFolder {
  readonly path: string;
  /** What its mark says since it was opened. */
  #mark: string | undefined;
  /** A flush can hold a thread of the pool for long, which other flushes and signatures need. */
  readonly #flushes = new FairSlots(1);

  constructor(path: string) {
    this.path = path;
  }

  /** Makes the folder, if it is missing, and reads its mark; `undefined` if it has none. */
  async open(): Promise<string | undefined> {
    makeFolder(this.path);
    this.#mark = await this.#readMark();
    return this.#mark;
  }

  async #readMark(): Promise<string | undefined> {
    try {
      return (await readFile(join(this.path, markFile), 'utf8')).trim();
    } catch (error) {
      if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  /**
   * Checks that the folder is there and the one that was opened: without its file system, a path can be
   * an empty folder of another one.
   *
   * @throws Error that says what to do
   */
  async check(): Promise<void> {
    if ((await this.#readMark()) === this.#mark) return;
    throw new Error(`${this.path} has not the file ${markFile} of before: mount its file system`);
  }

  /** Marks the folder for good. */
  async mark(text: string): Promise<void> {
    await writeFile(join(this.path, markFile), `${text}\n`, { mode: 0o600, flush: true });
    this.#mark = text;
    await this.#flushFolder();
  }

  /**
   * Writes a file: when it resolves, the whole is on disk under its name; if it rejects, there may be
   * a file to remove.
   *
   * @param receive calls its parameter with each piece, in order, and waits for it
   * @throws Error as {@link check} does; what `receive` throws
   */
  async write(
    name: string,
    receive: (write: (piece: Uint8Array) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const path = join(this.path, name);
    const file = await open(path + partial, 'wx', 0o600);
    try {
      // While it is open, its file system stays; if another one takes the path, the renaming fails.
      await this.check();
      await receive((piece) => writeAll(file, piece));
      await this.#flush(name, () => file.datasync());
    } finally {
      await file.close();
    }
    await rename(path + partial, path);
    await this.#flush(name, () => this.#flushFolder());
  }

  /** Opens a file for reading; `undefined` if it is missing. The caller closes it. */
  async read(name: string): Promise<FileHandle | undefined> {
    try {
      return await open(join(this.path, name), 'r');
    } catch (error) {
      if (!isMissing(error)) throw error;
      return undefined;
    }
  }

  /**
   * Deletes what there is of a file: the incomplete one first, which may be renamed meanwhile.
   * @throws Error as {@link check} does, if nothing is there
   */
  async remove(name: string): Promise<void> {
    if (await this.#unlink(name)) return;
    await this.check();
    // The folder may have come back after the first time.
    await this.#unlink(name);
  }

  /** Returns whether there was something. */
  async #unlink(name: string): Promise<boolean> {
    let isThere = false;
    for (const path of [join(this.path, name + partial), join(this.path, name)]) {
      const isRemoved = await unlink(path).then(
        () => true,
        (error: unknown) => {
          if (!isMissing(error)) throw error;
          return false;
        },
      );
      isThere ||= isRemoved;
    }
    return isThere;
  }

  async #flush(name: string, work: () => Promise<void>): Promise<void> {
    await this.#flushes.take(name);
    try {
      await work();
    } finally {
      this.#flushes.give();
    }
  }

  async #flushFolder(): Promise<void> {
    const folder = await open(this.path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.length; ) {
    const { bytesWritten } = await file.write(piece, at);
    at += bytesWritten;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
