import type { Row, SqlValue, StorageFaults, Writer } from '../types.ts';
import type { SqliteConnection } from './connection.ts';

/** Statements after which other work of the event loop runs; rows count a tenth: about 5 ms. */
const statementsPerTurn = 400;

/**
 * A transaction's access to its connection; throws after the transaction has ended. One with many
 * statements pauses now and then, so that it does not hold the event loop.
 */
export class SqliteTransaction implements Writer {
  #connection: SqliteConnection | undefined;
  readonly #faults: StorageFaults;
  #failure: unknown;
  #statements = 0;
  /** Resolves in the next turn, while the transaction waits for it. */
  #pause: Promise<void> | undefined;

  constructor(connection: SqliteConnection, faults: StorageFaults) {
    this.#connection = connection;
    this.#faults = faults;
  }

  /** The error of the first failed statement; then nothing of the transaction is stored. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Whether the transaction waits for its next turn. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    while (this.#pause !== undefined) await this.#pause;
    const row = this.#use(sql, (connection) => connection.get(sql, values)) as T | undefined;
    this.#count(1);
    return row;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    while (this.#pause !== undefined) await this.#pause;
    const rows = this.#use(sql, (connection) => connection.all(sql, values)) as T[];
    this.#count(1 + rows.length / 10);
    return rows;
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    while (this.#pause !== undefined) await this.#pause;
    const changes = this.#use(sql, (connection) => connection.run(sql, values));
    this.#count(1);
    return changes;
  }

  end(): void {
    this.#connection = undefined;
  }

  /** Counts statements; after so many, all that follow wait for the next turn. */
  #count(statements: number): void {
    this.#statements += statements;
    if (this.#statements < statementsPerTurn) return;
    this.#statements = 0;
    this.#pause = new Promise((resolve) => {
      setImmediate(() => {
        this.#pause = undefined;
        resolve();
      });
    });
  }

  #use<T>(sql: string, query: (connection: SqliteConnection) => T): T {
    if (this.#connection === undefined) throw new Error('the transaction has ended');
    // SQLite may have undone the transaction: another statement would be stored alone.
    if (this.#failure !== undefined) throw this.#failure;
    this.#faults.beforeStatement?.(sql);
    try {
      return query(this.#connection);
    } catch (error) {
      this.#failure ??= error;
      throw error;
    }
  }
}
