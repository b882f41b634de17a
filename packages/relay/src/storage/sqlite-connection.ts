import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { BoundedMap } from '../bounded-map.ts';
import type { Row, SqlValue } from './types.ts';

/** Prepared statements kept for each connection. */
const statementCacheSize = 512;

/** Milliseconds a connection waits for another one's lock. */
const busyTimeout = 5_000;

/** One SQLite connection with its prepared statements. Synchronous, like SQLite itself. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new BoundedMap<string, StatementSync>(statementCacheSize);

  constructor(path: string, options: { readonly readOnly: boolean }) {
    this.#database = new DatabaseSync(path, {
      readOnly: options.readOnly,
      timeout: busyTimeout,
      enableForeignKeyConstraints: true,
      enableDoubleQuotedStringLiterals: false,
    });
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Statements without parameters or rows. */
  execute(sql: string): void {
    this.#database.exec(sql);
  }

  get(sql: string, values: readonly SqlValue[]): Row | undefined {
    return this.#prepared(sql).get(...checked(values)) as Row | undefined;
  }

  all(sql: string, values: readonly SqlValue[]): Row[] {
    return this.#prepared(sql).all(...checked(values)) as Row[];
  }

  run(sql: string, values: readonly SqlValue[]): number {
    return Number(this.#prepared(sql).run(...checked(values)).changes);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** SQLite would take a fraction or a number past 2^53 and store something near it. */
function checked(values: readonly SqlValue[]): readonly SqlValue[] {
  for (const value of values) {
    if (typeof value === 'number' && !Number.isSafeInteger(value)) {
      throw new TypeError('only safe integers are stored');
    }
    if (typeof value === 'string' && !value.isWellFormed()) {
      throw new TypeError('only well-formed texts are stored');
    }
  }
  return values;
}
