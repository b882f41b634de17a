/** Looks for bad pages of a database at start. */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import type { SqliteConnection } from './connection.ts';

/** Bytes of a database that is checked before the start goes on: that takes less than 0.1 s. */
const smallDatabase = 33_554_432;
/** Milliseconds for the check of a larger one, in a process of its own. */
const checkTimeout = 600_000;

/** SQLITE_CORRUPT, SQLITE_NOTADB. */
const damageCodes = [11, 26];

const checkSql = 'PRAGMA quick_check(1)';

const program = `
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(process.argv[1], { readOnly: true, timeout: 5000 });
  process.stdout.write(database.prepare('${checkSql}').get().quick_check);
`;

export interface PageCheck {
  readonly path: string;
  readonly found: (problem: string) => void;
  readonly unfinished: (seconds: number) => void;
  /** Milliseconds; {@link checkTimeout} by default. */
  readonly timeout?: number;
}

/**
 * Checks a small database now, a larger one in another process while the relay runs.
 *
 * @param found is told the first problem of a larger database
 * @param unfinished is called with the seconds after which the check of a larger one was given up
 * @returns ends the check of a larger one
 * @throws Error with a sentence for operators, if a small database is damaged
 */
export function checkPages(
  connection: SqliteConnection,
  { path, found, unfinished, timeout = checkTimeout }: PageCheck,
): Disposable {
  if (statSync(path).size <= smallDatabase) {
    const problem = problemOf(connection);
    if (problem !== undefined) throw new Error(damaged(path, problem));
    return { [Symbol.dispose]: () => {} };
  }
  const options = { timeout, killSignal: 'SIGKILL' } as const;
  let isEnded = false;
  const check = execFile(process.execPath, ['-e', program, path], options, (error, output) => {
    if (isEnded) return;
    if (check.killed) {
      unfinished(timeout / 1_000);
      return;
    }
    if (error !== null && !/malformed|not a database/.test(error.message)) return;
    const problem = error === null ? output : error.message;
    if (problem !== 'ok') found(damaged(path, problem));
  });
  check.unref();
  return {
    [Symbol.dispose]: () => {
      isEnded = true;
      check.kill('SIGKILL');
    },
  };
}

/** Returns what operators are told about an error, if it means that the file is damaged. */
export function damageOf(path: string, error: unknown): Error | undefined {
  const { errcode, message } = error as { readonly errcode?: number; readonly message: string };
  if (errcode === undefined || !damageCodes.includes(errcode & 0xff)) return undefined;
  return new Error(damaged(path, message), { cause: error });
}

function problemOf(connection: SqliteConnection): string | undefined {
  const row = connection.get(checkSql, []) as { quick_check: string };
  return row.quick_check === 'ok' ? undefined : row.quick_check;
}

function damaged(path: string, problem: string): string {
  const [first] = problem.replace(/^\*\*\*.*\n/, '').split('\n');
  return (
    `${path} is damaged (${first}): check the disk, stop the relay and put a copy of the data ` +
    'folder in its place'
  );
}
