import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Row, SqlValue } from '../types.ts';
import { checkValues } from '../values.ts';

/** Limit of cached prepared statements per connection. */
const statementCacheSize = 512;

/** One SQLite connection with a cache of prepared statements. Synchronous, like SQLite itself. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * @param options.lockTimeout milliseconds for which a statement blocks the thread while another
   *   connection holds a lock; 0 by default
   */
  constructor(
    path: string,
    { readOnly, lockTimeout = 0 }: { readonly readOnly: boolean; readonly lockTimeout?: number },
  ) {
    this.#database = new DatabaseSync(path, {
      readOnly,
      timeout: lockTimeout,
      enableForeignKeyConstraints: true,
      enableDoubleQuotedStringLiterals: false,
    });
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Runs statements that have neither parameters nor rows. */
  execute(sql: string): void {
    this.#database.exec(sql);
  }

  get(sql: string, values: readonly SqlValue[]): Row | undefined {
    return this.#prepared(sql).get(...checkValues(values)) as Row | undefined;
  }

  all(sql: string, values: readonly SqlValue[]): Row[] {
    return this.#prepared(sql).all(...checkValues(values)) as Row[];
  }

  run(sql: string, values: readonly SqlValue[]): number {
    return Number(this.#prepared(sql).run(...checkValues(values)).changes);
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
    // In the order of preparation: to note each use would cost as much as a short statement.
    const [oldest] = this.#statements.keys();
    if (this.#statements.size > statementCacheSize) this.#statements.delete(oldest as string);
    return statement;
  }
}
