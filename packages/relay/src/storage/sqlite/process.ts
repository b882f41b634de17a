/** Statements of SQLite that are one long call, which cannot be interrupted: in a process of their own. */
import { execFile } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';

/**
 * SQLite works in a second thread. The first one watches standard input, which the system closes when
 * the parent process is gone, however it ended: without a parent, nothing is written any more.
 */
const start = `
  const { Worker } = require('node:worker_threads');
  process.stdin.on('close', () => process.kill(process.pid, 'SIGKILL')).resume();
  const work = ({ path, value, program, readOnly }) => {
    const { DatabaseSync } = require('node:sqlite');
    const database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    try {
      return new Function('database', 'value', program)(database, value);
    } finally {
      database.close();
    }
  };
  const [, path, value, program, access] = process.argv;
  const readOnly = access === 'read';
  const text = 'const { workerData, parentPort } = require("node:worker_threads");' +
    'parentPort.postMessage((' + work + ')(workerData) ?? "");';
  const worker = new Worker(text, { eval: true, workerData: { path, value, program, readOnly } });
  let result = '';
  worker.on('message', (message) => { result = message; });
  worker.on('error', (error) => {
    process.stderr.write(String(error.stack) + '\\n', () => process.exit(1));
  });
  worker.on('exit', (code) => {
    if (code === 0) process.stdout.write(result, () => process.exit(0));
  });
`;

/**
 * Runs a program that has `database`, opened for reading if nothing else is asked for, and `value`.
 *
 * @returns the text that it returns
 * @throws Error with what SQLite says; the reason of the signal
 */
export async function runSqlite(
  program: string,
  {
    path,
    value = '',
    access = 'read',
    signal,
  }: {
    readonly path: string;
    readonly value?: string;
    readonly access?: 'read' | 'write';
    readonly signal?: AbortSignal | undefined;
  },
): Promise<string> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const args = ['-e', start, path, value, program, access];
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
