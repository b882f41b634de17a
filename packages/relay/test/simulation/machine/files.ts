/** Functions of Node for files, as far as a relay uses them on a disk of a simulation. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname } from 'node:path';
import { diskOfFile, diskOfFolder } from './disk.ts';

const { openSync, closeSync, writeSync, fdatasyncSync } = fs;

/** Tells disks which files are open, what is written to them, and when they are flushed. */
export function replaceFiles(): void {
  const replaced: Pick<typeof fs, 'openSync' | 'closeSync' | 'fdatasyncSync'> & {
    readonly writeSync: (file: number, ...rest: unknown[]) => number;
  } = {
    openSync(path, flags, mode) {
      const file = openSync(path, flags, mode);
      const disk = diskOfFolder(dirname(String(path)));
      if (disk === undefined) return file;
      disk.fileOpened(file, String(path));
      return file;
    },
    closeSync(file) {
      diskOfFile(file)?.fileClosed(file);
      closeSync(file);
    },
    writeSync(file, ...rest) {
      const written = (writeSync as (file: number, ...rest: unknown[]) => number)(file, ...rest);
      const at = rest.at(-1);
      if (typeof at === 'number') diskOfFile(file)?.fileWritten(file, at + written);
      return written;
    },
    fdatasyncSync(file) {
      const disk = diskOfFile(file);
      if (disk === undefined) fdatasyncSync(file);
      else disk.fileFlushed(file);
    },
  };
  Object.assign(fs, replaced);
  syncBuiltinESMExports();
}
