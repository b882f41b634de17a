import type { QueryConfig, QueryResult } from 'pg';
import type { BatchWriter, Row, SqlColumn, SqlValue, StorageFaults, Writer } from '../types.ts';
import { checkValues } from '../values.ts';
import type { PostgresClient } from './client.ts';
import { fromBeginning, fromDriver } from './errors.ts';
import type { PostgresStatements } from './sql.ts';

type Value = SqlValue | SqlColumn;

/** A transaction's access to its connection; throws after the transaction has ended. */
export class PostgresTransaction implements Writer, BatchWriter {
  /** Rejects if the transaction could not begin; then none of its statements had an effect. */
  readonly begun: Promise<void>;
  #client: PostgresClient | undefined;
  readonly #statements: PostgresStatements;
  readonly #faults: StorageFaults;
  readonly #answerTimeout: number | undefined;
  #failure: unknown;
  #isReading = true;

  /** Begins the transaction. Its first statement is sent without waiting: one round trip less. */
  constructor(
    client: PostgresClient,
    parts: {
      readonly begin: string;
      readonly statements: PostgresStatements;
      readonly faults: StorageFaults;
      /** Milliseconds to wait for an answer, if not the connection's default. */
      readonly answerTimeout?: number | undefined;
    },
  ) {
    this.#client = client;
    this.#answerTimeout = parts.answerTimeout;
    this.#statements = parts.statements;
    this.#faults = parts.faults;
    this.begun = client.query(this.#withTimeout({ text: parts.begin })).then(
      () => {},
      (error: unknown) => this.#fail(fromBeginning(error)),
    );
    // The transaction's statements reject with the same error.
    this.begun.catch(() => {});
  }

  /** The error of the first failed statement; then the transaction cannot be committed. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Whether all its statements so far were reads. */
  get isReading(): boolean {
    return this.#isReading;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    return (await this.#query(sql, values)).rows[0] as T | undefined;
  }

  async all<T extends Row>(sql: string, ...values: Value[]): Promise<T[]> {
    return (await this.#query(sql, values)).rows as T[];
  }

  async run(sql: string, ...values: Value[]): Promise<number> {
    return (await this.#query(sql, values)).rowCount ?? 0;
  }

  end(): void {
    this.#client = undefined;
  }

  async #query(sql: string, values: readonly Value[]): Promise<QueryResult> {
    if (this.#client === undefined) throw new Error('the transaction has ended');
    this.#faults.beforeStatement?.(sql);
    const { text, name, isReading } = this.#statements.of(sql);
    const query = this.#client.query(
      this.#withTimeout({ text, name, values: [...checkValues(values)] }),
    );
    this.#isReading &&= isReading;
    try {
      return await query;
    } catch (error) {
      return this.#fail(fromDriver(error));
    }
  }

  #withTimeout<T extends QueryConfig>(query: T): T {
    return this.#answerTimeout === undefined
      ? query
      : { ...query, query_timeout: this.#answerTimeout };
  }

  #fail(error: unknown): never {
    this.#failure ??= error;
    throw this.#failure;
  }
}
