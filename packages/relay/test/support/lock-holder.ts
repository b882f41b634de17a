/** Another process that holds the write lock of a SQLite database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const program = `
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(process.argv[1]);
  database.exec('BEGIN EXCLUSIVE');
  process.stdout.write('locked');
  process.stdin.resume().on('end', () => process.exit());
`;

/** Locks the database at `path` until it is disposed of. */
export async function lockDatabase(path: string): Promise<AsyncDisposable> {
  const holder = spawn(process.execPath, ['-e', program, path], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'exit');
  await Promise.race([
    once(holder.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('the process that locks the database ended'))),
  ]);
  return {
    [Symbol.asyncDispose]: async () => {
      holder.stdin.end();
      await ended;
    },
  };
}
