import type { Row, SqlValue, StorageFaults, SyncWriter } from '../types.ts';
import type { SqliteConnection } from './connection.ts';

/** What runs the statements of a transaction. */
export type Statements = Pick<SqliteConnection, 'get' | 'all' | 'run'>;

/** A work's access to the connection inside a transaction; each statement is answered at once. */
export class SyncTransaction implements SyncWriter {
  #connection: Statements | undefined;
  readonly #faults: StorageFaults;
  #failure: unknown;
  #hasChanged = false;

  constructor(connection: Statements, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  /** The error of the first failed statement; then nothing of the work is stored. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Whether a statement may have changed something. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  get<T extends Row>(sql: string, ...values: SqlValue[]): T | undefined {
    const row = this.#query('get', sql, values);
    this.#hasChanged ||= !sql.startsWith('SELECT');
    return row as T | undefined;
  }

  all<T extends Row>(sql: string, ...values: SqlValue[]): T[] {
    const rows = this.#query('all', sql, values);
    this.#hasChanged ||= !sql.startsWith('SELECT');
    return rows as T[];
  }

  run(sql: string, ...values: SqlValue[]): number {
    const changes = this.#query('run', sql, values);
    this.#hasChanged = true;
    return changes as number;
  }

  end(): void {
    this.#connection = undefined;
  }

  #query(kind: keyof Statements, sql: string, values: readonly SqlValue[]) {
    if (this.#connection === undefined) throw new Error('the transaction has ended');
    // SQLite may have undone the transaction: another statement would be stored alone.
    if (this.#failure !== undefined) throw this.#failure;
    this.#faults.beforeStatement?.(sql);
    try {
      return this.#connection[kind](sql, values);
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}
