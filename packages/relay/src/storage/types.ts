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

/** A statement with its values: for a write, and for an append, which awaits nothing. */
export type Statement = readonly [sql: string, ...values: SqlValue[]];

/** A row, by column name. */
export type Row = Record<string, SqlValue>;

/** Resolves when no write is about to come any more; `undefined` if none is. */
export type Upcoming = () => Promise<void> | undefined;

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

/** A transaction whose statements are answered at once. */
export interface SyncWriter {
  /** Returns the first row, or `undefined`. */
  get<T extends Row>(sql: string, ...values: SqlValue[]): T | undefined;
  /** Returns all rows. */
  all<T extends Row>(sql: string, ...values: SqlValue[]): T[];
  /** Runs a statement and returns the number of rows it changed. */
  run(sql: string, ...values: SqlValue[]): number;
}

/** Values of a column, one for each row. */
export type SqlColumn = readonly SqlValue[];

/** A transaction of an engine that takes arrays as parameters, as in `unnest(?::text[], ?::bigint[])`. */
export interface BatchWriter {
  /** Returns all rows. */
  all<T extends Row>(sql: string, ...values: (SqlValue | SqlColumn)[]): Promise<T[]>;
  /** Runs a statement and returns the number of rows it changed. */
  run(sql: string, ...values: (SqlValue | SqlColumn)[]): Promise<number>;
}

/**
 * A small write of which many arrive, declared next to its SQL. It says yes or nothing: it declines
 * whatever is unusual, and the general way then finds the right answer. Both forms write the same
 * rows.
 */
export interface AppendKind<Input, Output> {
  /** Kinds that write the same rows share it, and their batch: their inputs are written together. */
  readonly name: string;
  /** What the write belongs to, as for {@link Storage.write}. */
  aggregates(input: Input): readonly AggregateKey[];
  /**
   * For an engine inside this process: checks the input and writes it, without waiting for anything.
   *
   * @returns `undefined` if it declines, before its first change
   */
  apply(tx: SyncWriter, input: Input): Output | undefined;
  /** For an engine in another process; without it, that engine declines. */
  readonly batch: AppendBatch<Input, Output> | undefined;
}

/** Writes many inputs in few statements, and declines each of them for itself. */
export interface AppendBatch<Input, Output> {
  /** Returns about how many bytes of text are stored: a batch has a limit of them. */
  bytes(input: Input): number;
  /**
   * Checks the inputs and writes those it does not decline. Awaits nothing but `tx`. Rows that
   * batches of other processes may write too are written in a fixed order.
   *
   * @param changed called for each aggregate that another process has changed since this one read it
   * @returns for each input its output, or `undefined` if it is declined and nothing of it is written;
   *   `undefined` to undo all: each half of the inputs is then tried for itself, and one alone is
   *   declined
   */
  write(
    tx: BatchWriter,
    inputs: readonly Input[],
    changed: (aggregate: AggregateKey) => void,
  ): Promise<readonly (Output | undefined)[] | undefined>;
}

/**
 * What writes are serialized by: `account:<id>`, `group:<id>`, `channel:<id>`, `challenge:<hash>`,
 * `address:<client address>` (what is counted for it), `relay`, `relays` (what is known of others), `registration` (who may come), `daily <owner>` (bytes of a day), and the name of a job for work that only one process's job may claim.
 */
export type AggregateKey = string;

/** Is told which aggregates writes may change. A write of which it was told begins and ends once. */
export interface WriteListener {
  /** The work of a write begins to run: from now on an append may see what it wrote. */
  begins(aggregates: readonly AggregateKey[]): void;
  /** It has ended, and reads from now on see what it wrote; its caller is not answered yet. */
  ended(aggregates: readonly AggregateKey[]): void;
  /** Another process may have written anything. */
  changed(): void;
}

export interface WriteOptions {
  readonly keepsFacts?: boolean;
}

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
   * Runs `work` on one snapshot that may be open for minutes: it holds up no other call, and these have
   * their turn between its statements. Unlike for {@link read}, `work` may await anything, for less than ten
   * seconds between two statements, and is not run again.
   *
   * @throws ProtocolError `temporarily_unavailable` if the database cannot be reached
   */
  longRead<T>(work: (tx: Reader) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a transaction: all or nothing, durable when the promise resolves. `work` awaits
   * nothing but `tx`: an engine may run several in one transaction, and may run one again after a
   * conflict, so `work` has no effect outside `tx` except its return value. If `work` throws, its
   * writes are undone and the promise rejects.
   *
   * @param aggregates writes of the same aggregate run one after another; state that `work`
   *   decides by must belong to one of them, or be safe to decide by while others write it
   * @param options.keepsFacts `work` changes nothing that is remembered of its aggregates, so that
   *   listeners of {@link watch} are not told
   * @throws ProtocolError `temporarily_unavailable` if the database cannot be reached, too many
   *   writes wait, or the outcome of the commit is unknown; even then it is not applied twice
   */
  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    options?: WriteOptions,
  ): Promise<T>;
  /**
   * Does one small write of a kind of which many arrive; many share a transaction, and statements
   * where that is faster. Durable when the promise resolves.
   *
   * @returns `undefined` if the kind declined: nothing was written, and {@link write} is the way
   * @throws ProtocolError as {@link write}
   */
  append<Input, Output>(kind: AppendKind<Input, Output>, input: Input): Promise<Output | undefined>;
  /** Whether {@link append} can do writes of a kind. If not, it declines all. */
  appends<Input, Output>(kind: AppendKind<Input, Output>): boolean;
  /**
   * Tells a listener the aggregates of each {@link write}, for as long as the storage is open. The
   * listener is also notified of aggregates that a batch finds changed by another process.
   */
  watch(listener: WriteListener): void;
  /**
   * Runs a schema change: like {@link write} of the aggregate `relay`, with timeouts long enough to
   * rewrite whole tables and to wait for schema changes of other processes.
   */
  define<T>(work: (tx: Writer) => Promise<T>): Promise<T>;
  /** Reads how much room the database takes. */
  space(): Promise<DatabaseSpace>;
  /**
   * Gives a little of the room that the database does not use back to the disk, if it has much of it:
   * a step that takes about a millisecond. An engine with a server of its own leaves that to it.
   *
   * @returns whether there is more to give back
   */
  reclaim(): Promise<boolean>;
}

/** Bytes of a database. */
export interface DatabaseSpace {
  readonly bytes: number;
  /** Of these, the bytes that hold nothing; 0 if the engine does not say. */
  readonly unused: number;
}

/**
 * A numbered, immutable step of the schema. Statements run in order, once. Numbers: auth from 100,
 * accounts from 200, messages from 300, groups from 400, channels from 500, federation from 600, blobs from
 * 700, registration from 800, usage
 * from 900.
 */
export interface Migration {
  readonly id: number;
  readonly name: string;
  readonly statements: readonly string[];
  /** What an operator has to know whose relay is upgraded, and what to do. Not part of the digest. */
  readonly note?: string;
}

/**
 * The points of a write, in their order, at which tests end the process: it waits for its turn, its
 * transaction began, it is complete, it is committed, its caller is about to be answered: only then
 * it is on disk. SQLite passes all but the first once for a group of writes.
 */
export const writePoints = ['queued', 'begun', 'commit', 'committed', 'answer'] as const;
type WritePoint = (typeof writePoints)[number];

/** Hooks with which a test makes storage fail; each but `reach` may throw. */
export interface StorageFaults {
  beforeStatement?(sql: string): void;
  beforeCommit?(): void;
  /** Runs in place of a flush of the embedded database's log: holds it, or makes it fail. */
  flush?(flush: () => Promise<void>): Promise<void>;
  /** Is called at each point of each write. */
  reach?(point: WritePoint): void;
}
