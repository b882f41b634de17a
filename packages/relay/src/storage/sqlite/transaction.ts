import type { Row, SqlValue, StorageFaults, Writer } from '../types.ts';
import type { SqliteConnection } from './connection.ts';

/** A transaction's view of its connection; unusable once the transaction has ended. */
export class SqliteTransaction implements Writer {
  #connection: SqliteConnection | undefined;
  readonly #faults: StorageFaults;
  #failure: unknown;

  constructor(connection: SqliteConnection, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  /** What its first failed statement failed with; nothing of it is kept then. */
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

  #use<T>(sql: string, ask: (connection: SqliteConnection) => T): T {
    if (this.#connection === undefined) throw new Error('the transaction has ended');
    this.#faults.beforeStatement?.(sql);
    try {
      return ask(this.#connection);
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}
