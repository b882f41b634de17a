/** Statements of SQLite that are one long call, which cannot be interrupted: in a process of their own. */
import { execFile } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';

const start = `
  const { DatabaseSync } = require('node:sqlite');
  const [, path, value] = process.argv;
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
`;

/**
 * Runs a program that has `database`, opened for reading, and `value`.
 *
 * @returns what it writes to standard output
 * @throws Error with what SQLite says; the reason of the signal
 */
export async function runSqlite(
  program: string,
  { path, value = '', signal }: { path: string; value?: string; signal?: AbortSignal | undefined },
): Promise<string> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const args = ['-e', start + program, path, value];
  const child = execFile(process.execPath, args, (error, output, errors) => {
    if (error === null) resolve(output);
    else reject(new Error(`${path}: ${message(errors) ?? error.message}`));
  });
  const kill = () => void child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  try {
    return await promise;
  } catch (error) {
    // A Ctrl+C in the terminal ends both processes at once.
    await turn();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
}

/** Returns what an error of Node says, without the stack. */
function message(errors: string): string | undefined {
  return /^\w*Error[^:]*: (.*)$/m.exec(errors)?.[1];
}
