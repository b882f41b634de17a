/**
 * What the subjects' stores may ask of an engine. One set of SQL serves every engine: `?` marks
 * parameters, integers are JavaScript numbers, texts are strings, there are no blobs and no
 * booleans (0 and 1). Where a statement must differ between engines, the difference is a method
 * here, never an `if` in a store.
 *
 * What both engines have in common, and no more:
 * - column types `TEXT` and `BIGINT`, compared byte by byte and by value; `NOT NULL`,
 *   `PRIMARY KEY`, `REFERENCES`, `CHECK`, indexes (partial ones too); no `STRICT`, no `WITHOUT ROWID`, no
 *   automatic numbers;
 * - `INSERT ... ON CONFLICT (columns) DO UPDATE SET x = excluded.x` or `DO NOTHING`, and
 *   `RETURNING` through `get` or `all`;
 * - `LIMIT`, row values `(a, b) > (?, ?)`, common table expressions.
 */

/** A column value. */
export type SqlValue = string | number | null;

/** A row, by column name. */
export type Row = Record<string, SqlValue>;

/** A consistent snapshot. */
export interface Reader {
  /** First row, or `undefined`. */
  get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined>;
  all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]>;
}

/** A transaction. A write can only be made through it. */
export interface Writer extends Reader {
  /** Runs a statement and says how many rows it changed. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
}

/** The thing whose writes happen one after another: `account:<id>`, `group:<id>`, `relay`. */
export type AggregateKey = string;

export interface Storage extends AsyncDisposable {
  /** One snapshot for all queries of `work`. */
  read<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /**
   * All or nothing, durable when the promise resolves. `work` awaits nothing but `tx`: an engine
   * may run several works in one transaction, and may run one again after a conflict, so it has
   * no effect outside `tx` but its return value. What it throws undoes its writes and rejects.
   *
   * @param aggregates whose writes are kept apart from others of the same aggregates
   */
  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T>;
}

/**
 * A numbered, immutable step of the schema. Statements run in order, once. Numbers: auth from 100,
 * accounts from 200, messages from 300.
 */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** Where a test makes storage fail; each hook may throw. */
export interface StorageFaults {
  beforeStatement?(sql: string): void;
  beforeCommit?(): void;
}
