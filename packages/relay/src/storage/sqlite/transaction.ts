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
  #pauses = 0;

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
    return this.#pauses > 0;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    const row = this.#use(sql, (connection) => connection.get(sql, values)) as T | undefined;
    if (this.#isTurnOver(1)) await this.#pause();
    return row;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    const rows = this.#use(sql, (connection) => connection.all(sql, values)) as T[];
    if (this.#isTurnOver(1 + rows.length / 10)) await this.#pause();
    return rows;
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    const changes = this.#use(sql, (connection) => connection.run(sql, values));
    if (this.#isTurnOver(1)) await this.#pause();
    return changes;
  }

  end(): void {
    this.#connection = undefined;
  }

  #isTurnOver(statements: number): boolean {
    this.#statements += statements;
    return this.#statements >= statementsPerTurn;
  }

  async #pause(): Promise<void> {
    this.#statements = 0;
    this.#pauses += 1;
    await new Promise((resolve) => setImmediate(resolve));
    this.#pauses -= 1;
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
