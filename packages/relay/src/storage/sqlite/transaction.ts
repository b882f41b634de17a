import type { Row, SqlValue, StorageFaults, Writer } from '../types.ts';
import type { SqliteConnection } from './connection.ts';

/** A transaction's access to its connection; throws after the transaction has ended. */
export class SqliteTransaction implements Writer {
  #connection: SqliteConnection | undefined;
  readonly #faults: StorageFaults;
  #failure: unknown;

  constructor(connection: SqliteConnection, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  /** The error of the first failed statement; then nothing of the transaction is stored. */
  get failure(): unknown {
    return this.#failure;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    return this.#use(sql, (connection) => connection.get(sql, values)) as T | undefined;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    return this.#use(sql, (connection) => connection.all(sql, values)) as T[];
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    return this.#use(sql, (connection) => connection.run(sql, values));
  }

  end(): void {
    this.#connection = undefined;
  }

  #use<T>(sql: string, query: (connection: SqliteConnection) => T): T {
    if (this.#connection === undefined) throw new Error('the transaction has ended');
    this.#faults.beforeStatement?.(sql);
    try {
      return query(this.#connection);
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}
