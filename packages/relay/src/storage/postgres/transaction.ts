import type { QueryConfig, QueryResult } from 'pg';
import type { Row, SqlValue, StorageFaults, Writer } from '../types.ts';
import { checkValues } from '../values.ts';
import type { PostgresClient } from './client.ts';
import { fromBeginning, fromDriver } from './errors.ts';
import type { PostgresStatements } from './sql.ts';

/** A transaction's view of its connection; unusable once the transaction has ended. */
export class PostgresTransaction implements Writer {
  /** Rejects where the transaction could not begin; nothing that left behind it was done then. */
  readonly begun: Promise<void>;
  #client: PostgresClient | undefined;
  readonly #statements: PostgresStatements;
  readonly #faults: StorageFaults;
  readonly #answer: number | undefined;
  #failure: unknown;
  #isReading = true;

  /** Begins it. The work's first statement leaves before the answer is there: one way less. */
  constructor(
    client: PostgresClient,
    parts: {
      readonly begin: string;
      readonly statements: PostgresStatements;
      readonly faults: StorageFaults;
      /** Milliseconds for an answer, where it may take longer than usual. */
      readonly answer?: number | undefined;
    },
  ) {
    this.#client = client;
    this.#answer = parts.answer;
    this.#statements = parts.statements;
    this.#faults = parts.faults;
    this.begun = client.query(this.#patient({ text: parts.begin })).then(
      () => {},
      (error: unknown) => this.#fail(fromBeginning(error)),
    );
    // Whoever began it hears of it from the work's statements as well.
    this.begun.catch(() => {});
  }

  /** What its first failed statement failed with; the transaction cannot be committed then. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Whether it can have changed nothing. */
  get isReading(): boolean {
    return this.#isReading;
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
    const { text, name, isReading } = this.#statements.of(sql);
    const query = this.#client.query(
      this.#patient({ text, name, values: [...checkValues(values)] }),
    );
    this.#isReading &&= isReading;
    try {
      return await query;
    } catch (error) {
      return this.#fail(fromDriver(error));
    }
  }

  #patient<T extends QueryConfig>(query: T): T {
    return this.#answer === undefined ? query : { ...query, query_timeout: this.#answer };
  }

  #fail(error: unknown): never {
    this.#failure ??= error;
    throw this.#failure;
  }
}
