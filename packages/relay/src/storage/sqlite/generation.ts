import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import type { SqliteConnection } from './connection.ts';

/** Generations are counted in the database's `user_version`, in 31 bits. */
const modulus = 2 ** 31;
/** Bytes of the file: a fixed number of digits, so that a new number takes no room. */
const digits = 10;

/**
 * The number of writing transactions of a database, stored in it by each of them and, when it is on
 * disk, in a file of its own. If the database has a lower number than the file at start, it lost
 * what was committed: its log ends early, or an older copy was put in its place.
 */
export class Generation implements Disposable {
  readonly #file: number;
  #rowsChanged = 0;

  /** Opens the file at `path`, and creates it if there is none. */
  constructor(path: string) {
    // Not for appending: each number replaces the one before.
    closeSync(openSync(path, 'a', 0o600));
    this.#file = openSync(path, 'r+');
  }

  /** Returns how many transactions the database lacks. */
  missing(connection: SqliteConnection): number {
    const stored = this.#read();
    if (stored === undefined) return 0;
    const missing = (stored - versionOf(connection) + modulus) % modulus;
    // More than half of all numbers: the database is ahead, which a crash explains.
    return missing < modulus / 2 ? missing : 0;
  }

  /** Begins to count from what the database has. */
  begin(connection: SqliteConnection): void {
    this.#write(versionOf(connection));
  }

  /**
   * Counts a transaction that changed rows; call it in the transaction, last.
   *
   * @returns its number; `undefined` if it changed none
   */
  count(connection: SqliteConnection): number | undefined {
    const row = connection.get('SELECT total_changes() AS rows', []) as { rows: number };
    if (row.rows === this.#rowsChanged) return undefined;
    this.#rowsChanged = row.rows;
    const number = (versionOf(connection) + 1) % modulus;
    connection.execute(`PRAGMA user_version = ${number}`);
    return number;
  }

  /**
   * Stores the number of a transaction; call it when the transaction is on disk. If it were stored
   * before, a power cut could leave a number of which the database has nothing.
   */
  reached(number: number): void {
    this.#write(number);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  #read(): number | undefined {
    const bytes = Buffer.alloc(digits);
    const text = bytes.toString('latin1', 0, readSync(this.#file, bytes, 0, digits, 0));
    return /^\d{10}$/.test(text) ? Number(text) : undefined;
  }

  /** A number that cannot be written is too low, and hides a loss; writes go on. */
  #write(number: number): void {
    try {
      writeSync(this.#file, `${String(number).padStart(digits, '0')}\n`, 0);
    } catch {}
  }
}

function versionOf(connection: SqliteConnection): number {
  const row = connection.get('PRAGMA user_version', []) as { user_version: number };
  return row.user_version;
}
