/**
 * The interface between the stores and a storage engine. One set of SQL serves every engine: `?`
 * marks parameters, integers are JavaScript numbers, texts are strings, there are no blobs and no
 * booleans (0 and 1). If a statement must differ between engines, the difference is a method here,
 * never an `if` in a store.
 *
 * Stores use only what both engines support:
 * - column types `TEXT` and `BIGINT`, compared byte by byte and by value; `NOT NULL`,
 *   `PRIMARY KEY`, `REFERENCES`, `CHECK`, indexes (partial ones too); no `STRICT`, no `WITHOUT ROWID`, no
 *   automatic numbers;
 * - `INSERT ... ON CONFLICT (columns) DO UPDATE SET x = excluded.x` or `DO NOTHING`, and
 *   `RETURNING` through `get` or `all`;
 * - `LIMIT`, row values `(a, b) > (?, ?)`, common table expressions.
 *
 * A statement that fails ends its transaction: no statement may follow it.
 */

/** A column value: a well-formed text without U+0000, a safe integer, or null. */
export type SqlValue = string | number | null;

/** A row, by column name. */
export type Row = Record<string, SqlValue>;

/** A consistent snapshot. */
export interface Reader {
  /** Returns the first row, or `undefined`. */
  get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined>;
  /** Returns all rows. */
  all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]>;
}

/** A write transaction; the only way to write. */
export interface Writer extends Reader {
  /** Runs a statement and returns the number of rows it changed. */
  run(sql: string, ...values: SqlValue[]): Promise<number>;
}

/**
 * What writes are serialized by: `account:<id>`, `group:<id>`, `channel:<id>`, `challenge:<hash>`,
 * `address:<client address>` (what is counted for it), `relay`, `relays` (what is known of others), and the name of a job for work that only one process's job may claim.
 */
export type AggregateKey = string;

/** A storage engine. Its methods wait for locks and connections for a bounded time. */
export interface Storage extends AsyncDisposable {
  /**
   * A query for every column of every table, in order: rows of `table_name`, `column_name` and
   * `key_position`, which is 0 if the column is not part of the primary key.
   */
  readonly catalogueSql: string;
  /**
   * Runs `work` on one snapshot. `work` awaits nothing but `tx` and may be run again.
   *
   * @throws ProtocolError `temporarily_unavailable` if the database cannot be reached
   */
  read<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a transaction: all or nothing, durable when the promise resolves. `work` awaits
   * nothing but `tx`: an engine may run several in one transaction, and may run one again after a
   * conflict, so `work` has no effect outside `tx` except its return value. If `work` throws, its
   * writes are undone and the promise rejects.
   *
   * @param aggregates writes of the same aggregate run one after another; state that `work`
   *   decides by must belong to one of them, or be safe to decide by while others write it
   * @throws ProtocolError `temporarily_unavailable` if the database cannot be reached, too many
   *   writes wait, or the outcome of the commit is unknown; even then it is not applied twice
   */
  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
  ): Promise<T>;
  /**
   * Runs a schema change: like {@link write} of the aggregate `relay`, with timeouts long enough to
   * rewrite whole tables and to wait for schema changes of other processes.
   */
  define<T>(work: (tx: Writer) => Promise<T>): Promise<T>;
}

/**
 * A numbered, immutable step of the schema. Statements run in order, once. Numbers: auth from 100,
 * accounts from 200, messages from 300, groups from 400, channels from 500, federation from 600.
 */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/**
 * The points of a write, in their order, at which tests end the process: it waits for its turn, its
 * transaction began, it is complete, it is durable, its caller is about to be answered. SQLite passes
 * all but the first once for a group of writes.
 */
export const writePoints = ['queued', 'begun', 'commit', 'committed', 'answer'] as const;
type WritePoint = (typeof writePoints)[number];

/** Hooks with which a test makes storage fail; each but `reach` may throw. */
export interface StorageFaults {
  beforeStatement?(sql: string): void;
  beforeCommit?(): void;
  /** Is called at each point of each write. */
  reach?(point: WritePoint): void;
}
