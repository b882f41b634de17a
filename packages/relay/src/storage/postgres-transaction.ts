import type { ClientBase, QueryResult } from 'pg';
import { fromDriver } from './postgres-errors.ts';
import type { PostgresStatements } from './postgres-sql.ts';
import type { Row, SqlValue, StorageFaults, Writer } from './types.ts';
import { checkValues } from './values.ts';

/** A transaction's view of its connection; unusable once the transaction has ended. */
export class PostgresTransaction implements Writer {
  #client: ClientBase | undefined;
  readonly #statements: PostgresStatements;
  readonly #faults: StorageFaults;
  #failure: unknown;

  constructor(
    client: ClientBase,
    parts: { readonly statements: PostgresStatements; readonly faults: StorageFaults },
  ) {
    this.#client = client;
    this.#statements = parts.statements;
    this.#faults = parts.faults;
  }

  /** What its first failed statement failed with; the transaction cannot be committed then. */
  get failure(): unknown {
    return this.#failure;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    return (await this.#query(sql, values)).rows[0] as T | undefined;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    return (await this.#query(sql, values)).rows as T[];
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    return (await this.#query(sql, values)).rowCount ?? 0;
  }

  end(): void {
    this.#client = undefined;
  }

  async #query(sql: string, values: readonly SqlValue[]): Promise<QueryResult> {
    if (this.#client === undefined) throw new Error('the transaction has ended');
    this.#faults.beforeStatement?.(sql);
    const statement = { ...this.#statements.of(sql), values: [...checkValues(values)] };
    try {
      return await this.#client.query(statement);
    } catch (error) {
      this.#failure ??= fromDriver(error);
      throw this.#failure;
    }
  }
}
