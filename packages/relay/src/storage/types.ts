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
 *
 * A statement that fails ends its transaction: no work goes on behind one.
 */

/** A column value: a well-formed text without U+0000, a safe integer, or nothing. */
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

/**
 * The thing whose writes happen one after another: `account:<id>`, `group:<id>`, `channel:<id>`,
 * `challenge:<hash>`, `relay`, and the name of a job for what the job takes for itself.
 */
export type AggregateKey = string;

/** What the engines have in common. Its methods wait, for a bounded time, where the engine must. */
export interface Storage extends AsyncDisposable {
  /**
   * A query for every column of every table, in order: rows of `table_name`, `column_name` and
   * `key_position`, which is 0 where the column is not of the primary key.
   */
  readonly catalogueSql: string;
  /**
   * One snapshot for all queries of `work`, which awaits nothing but `tx` and may be run again.
   *
   * @throws ProtocolError `temporarily_unavailable` where the database cannot be reached
   */
  read<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /**
   * All or nothing, durable when the promise resolves. `work` awaits nothing but `tx`: an engine
   * may run several works in one transaction, and may run one again after a conflict, so it has
   * no effect outside `tx` but its return value. What it throws undoes its writes and rejects.
   *
   * @param aggregates whose writes are kept apart from others of the same aggregates; what a work
   *   decides by must be of one of them, or be safe to decide by while others write
   * @throws ProtocolError `temporarily_unavailable` where the database cannot be reached, too much
   *   waits, or nobody can tell whether a commit happened; it is not applied twice then either
   */
  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T>;
  /**
   * As {@link write}, of the aggregate `relay`, for what may read a whole database: changes of the
   * schema. It waits long, for such changes of other processes too.
   */
  define<T>(work: (tx: Writer) => Promise<T>): Promise<T>;
}

/**
 * A numbered, immutable step of the schema. Statements run in order, once. Numbers: auth from 100,
 * accounts from 200, messages from 300, groups from 400, channels from 500.
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
