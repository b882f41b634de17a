import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where what need not survive the machine is kept, and how many bytes must be free there. */
const memory = { path: '/dev/shm', free: 2e9 };

/**
 * A folder of its own for a test, gone when the test is over. In memory where there is enough of
 * it: a process that is killed loses nothing there either, and no commit waits for a disk.
 */
export function temporaryFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(memoryFolder(), 'posthouse-'));
  return {
    path,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** A folder in memory, or that of temporary files. */
export function memoryFolder(): string {
  if (!existsSync(memory.path)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory.path);
  return bavail * bsize >= memory.free ? memory.path : tmpdir();
}
