import type { SqliteConnection } from './sqlite-connection.ts';
import type { Row, SqlValue, StorageFaults, Writer } from './types.ts';

/** A transaction's view of its connection; unusable once the transaction has ended. */
export class SqliteTransaction implements Writer {
  #connection: SqliteConnection | undefined;
  readonly #faults: StorageFaults;

  constructor(connection: SqliteConnection, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    return this.#use(sql).get(sql, values) as T | undefined;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    return this.#use(sql).all(sql, values) as T[];
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    return this.#use(sql).run(sql, values);
  }

  end(): void {
    this.#connection = undefined;
  }

  #use(sql: string): SqliteConnection {
    if (this.#connection === undefined) throw new Error('the transaction has ended');
    this.#faults.beforeStatement?.(sql);
    return this.#connection;
  }
}
