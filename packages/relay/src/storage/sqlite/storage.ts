/** The embedded engine: one SQLite database in the relay's data folder, using `node:sqlite`. */
import { join } from 'node:path';
import { makeFolder } from '../../make-folder.ts';
import { requireRestored } from '../restoring.ts';
import type {
  AggregateKey,
  AppendKind,
  DatabaseSpace,
  Reader,
  Storage,
  StorageFaults,
  Upcoming,
  WriteListener,
  WriteOptions,
  Writer,
} from '../types.ts';
import { WriteListeners } from '../write-listeners.ts';
import { Checkpoints } from './checkpoints.ts';
import type { SqliteConnection } from './connection.ts';
import { checkPages, damageOf } from './damage.ts';
import { DurableSnapshots } from './durable-snapshots.ts';
import { failureKind, Outage, type SqliteObserver } from './failures.ts';
import { databaseOf, generationFile, lockFolder, privateFile, requireDatabase } from './folder.ts';
import { Generation } from './generation.ts';
import { whileLocked } from './lock-wait.ts';
import { longRead } from './long-read.ts';
import { openWriter, synchronous, undoInMemory, undoOnDisk } from './open-writer.ts';
import { Readers } from './readers.ts';
import { isWorthReclaiming, readSpace, reclaimStep } from './reclaim.ts';
import { keepReserve, openWithReserve } from './reserve.ts';
import { SqliteTransaction } from './transaction.ts';
import { WalFlush } from './wal-flush.ts';
import { SqliteWriter } from './writer.ts';

/** Milliseconds a call waits for a command's lock on the database: commands hold one for moments. */
const relayLockTimeout = 1_000;
/** Milliseconds a command waits for a lock: longer than a relay, whose callers try again themselves. */
const commandLockTimeout = 5_000;

/**
 * Opens the database in `directory` exclusively for this process; creates it if there is none.
 *
 * Durable means on disk. With an observer, which ends the process if a flush fails, the log is flushed
 * on the thread pool; without one, in each COMMIT.
 *
 * @param options.upcoming by which a batch of several writes stays open for those about to come
 * @param options.isRestoring whether the caller is the restore that the folder waits for, which has locked it
 * @param options.lacking what a command does with a database that lacks its last transactions: it refuses it, or
 *   leaves it to the next relay to notice; by default they are forgotten
 * @throws Error if another relay has the folder open, or its restore did not end
 */
export function openSqlite(
  directory: string,
  faults: StorageFaults = {},
  observer?: SqliteObserver,
  {
    isRestoring = false,
    ...options
  }: { readonly isRestoring?: boolean } & Pick<SqliteParts, 'upcoming' | 'lacking'> = {},
): SqliteStorage {
  if (!isRestoring) requireRestored(directory);
  makeFolder(directory);
  const reserve = join(directory, 'reserve');
  const parts = { ...options, faults, observer };
  const open = isRestoring ? openFolder : openLocked;
  const storage = openWithReserve(reserve, () => open(directory, parts));
  keepReserve(reserve);
  return storage;
}

type OpenParts = Pick<SqliteParts, 'faults' | 'observer' | 'lock' | 'upcoming' | 'lacking'>;

function openLocked(directory: string, parts: OpenParts): SqliteStorage {
  const lock = lockFolder(directory);
  try {
    return openFolder(directory, { ...parts, lock });
  } catch (error) {
    lock.close();
    throw error;
  }
}

function openFolder(directory: string, parts: OpenParts): SqliteStorage {
  const path = databaseOf(directory);
  try {
    const all = {
      ...parts,
      generationFile: generationFile(directory),
      lockTimeout: relayLockTimeout,
    };
    return new SqliteStorage(privateFile(path), all);
  } catch (error) {
    throw damageOf(path, error) ?? error;
  }
}

/**
 * Opens the database in `directory` without excluding a relay that may run on it: for rare and
 * short operations, since the two block each other's writes.
 *
 * @param beforeWrite runs at the beginning of each transaction that writes, and may refuse it
 * @throws Error if there is none
 */
export function openSqliteAlongside(
  directory: string,
  beforeWrite?: SqliteParts['beforeWrite'],
): SqliteStorage {
  requireRestored(directory);
  const parts = { beforeWrite, lockTimeout: commandLockTimeout };
  return new SqliteStorage(requireDatabase(directory), parts);
}

interface SqliteParts {
  readonly lock?: SqliteConnection;
  /** Path of the file with the number of the last transaction; a command has none. */
  readonly generationFile?: string;
  readonly faults?: StorageFaults;
  readonly observer?: SqliteObserver | undefined;
  readonly upcoming?: Upcoming | undefined;
  readonly lacking?: 'refuse' | 'leave' | undefined;
  readonly beforeWrite?: ((tx: Reader) => Promise<void>) | undefined;
  /** Milliseconds a call waits for a lock of another process. */
  readonly lockTimeout: number;
}

function lackingTransactions(count: number): string {
  return (
    `the database lacks its last ${count} transactions: put \`relay.sqlite-wal\`, or a whole folder, back. ` +
    'If they are lost, give a move that was begun up with --abandon, then run `posthouse restored`'
  );
}

/** The query for all columns of a SQLite database: `Storage.catalogueSql`. */
export const sqliteCatalogue = `SELECT t.name AS table_name, c.name AS column_name,
    c.pk AS key_position
  FROM sqlite_master t JOIN pragma_table_info(t.name) c
  WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~'
  ORDER BY t.name, c.cid`;

export class SqliteStorage implements Storage {
  readonly catalogueSql = sqliteCatalogue;
  /** Absent if the database was opened alongside a relay, or the caller has locked the folder. */
  readonly #lock: SqliteConnection | undefined;
  readonly #write: SqliteConnection;
  /** Absent if each COMMIT flushes. */
  readonly #flush: WalFlush | undefined;
  /** Absent if each COMMIT flushes. */
  readonly #snapshots: DurableSnapshots | undefined;
  /** Absent if SQLite copies the log in some of its commits. */
  readonly #checkpoints: Checkpoints | undefined;
  readonly #writer: SqliteWriter;
  readonly #readers: Readers;
  readonly #faults: StorageFaults;
  readonly #observer: SqliteObserver | undefined;
  readonly #outage: Outage;
  /** Ends with the storage. */
  readonly #checks = new DisposableStack();
  readonly #lockTimeout: number;
  readonly #beforeWrite: SqliteParts['beforeWrite'];
  readonly #listeners = new WriteListeners();
  readonly #path: string;
  #closed = false;

  constructor(path: string, { lock, generationFile, observer, upcoming, ...parts }: SqliteParts) {
    const { faults = {}, lockTimeout, lacking } = parts;
    this.#path = path;
    this.#beforeWrite = parts.beforeWrite;
    this.#lock = lock;
    this.#faults = faults;
    this.#observer = observer;
    this.#outage = new Outage(observer);
    this.#lockTimeout = lockTimeout;
    this.#write = openWriter(path, observer === undefined ? 'commit' : 'pool');
    const failed = (error: unknown) => observer?.unflushed(error);
    const ended = () => this.#snapshots?.flushed();
    const flush =
      observer === undefined ? undefined : new WalFlush(path, { faults, failed, ended });
    this.#flush = flush;
    const died = (error: unknown) => observer?.checkpointsStopped(error);
    const checkpoints =
      observer === undefined
        ? undefined
        : new Checkpoints(this.#write, {
            path,
            died,
            holdReads: (work) => this.#readers.hold(work),
          });
    this.#checkpoints = checkpoints;
    const generation =
      generationFile === undefined ? undefined : this.#check(path, { generationFile, lacking });
    const outage = this.#outage;
    const listeners = this.#listeners;
    this.#readers = new Readers(path);
    this.#snapshots = flush && new DurableSnapshots(this.#readers, flush);
    this.#writer = new SqliteWriter(this.#write, {
      ...{ faults, outage, listeners, lockTimeout, generation, flush, checkpoints },
      ...{ snapshots: this.#snapshots, upcoming },
    });
  }

  /** Looks for lost transactions and bad pages. */
  #check(
    path: string,
    { generationFile, lacking }: { readonly generationFile: string } & Pick<SqliteParts, 'lacking'>,
  ): Generation | undefined {
    try {
      const found = (problem: string) => this.#observer?.damaged(problem);
      const unfinished = (seconds: number) => this.#observer?.pagesUnchecked(seconds);
      this.#checks.use(checkPages(this.#write, { path, found, unfinished }));
      if (lacking === 'leave') return undefined;
      const generation = this.#checks.use(new Generation(generationFile));
      const missing = generation.missing(this.#write);
      if (missing > 0 && lacking === 'refuse') throw new Error(lackingTransactions(missing));
      generation.begin(this.#write);
      if (missing > 0) this.#observer?.wentBack(missing);
      return generation;
    } catch (error) {
      this.#checks.dispose();
      this.#write.close();
      throw error;
    }
  }

  async read<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error('storage is closed');
    const snapshot = this.#snapshots?.current;
    try {
      if (snapshot !== undefined) return await snapshot.read(work, this.#faults);
      return await whileLocked(() => this.#readOnce(work), this.#lockTimeout);
    } catch (error) {
      throw this.#outage.errorOf(error);
    } finally {
      // What it saw may not be on disk yet: no answer may be made of it before.
      if (snapshot === undefined) await this.#flush?.reached();
    }
  }

  longRead<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error('storage is closed');
    const begin = { lockTimeout: this.#lockTimeout, settled: () => this.#flush?.reached() };
    return longRead(this.#path, begin, work);
  }

  async #readOnce<T>(work: (tx: Reader) => Promise<T>): Promise<T> {
    const connection = await this.#readers.take();
    const tx = new SqliteTransaction(connection, this.#faults);
    try {
      connection.run('BEGIN', []);
      return await work(tx);
    } catch (error) {
      throw failureKind(tx.failure) === 'refused' ? error : tx.failure;
    } finally {
      tx.end();
      try {
        if (connection.isInTransaction) connection.run('ROLLBACK', []);
      } finally {
        this.#readers.release(connection);
      }
    }
  }

  write<T>(
    aggregates: AggregateKey | readonly AggregateKey[],
    work: (tx: Writer) => Promise<T>,
    { keepsFacts = false }: WriteOptions = {},
  ): Promise<T> {
    const keys = typeof aggregates === 'string' ? [aggregates] : aggregates;
    const before = this.#beforeWrite;
    const checked =
      before === undefined ? work : (tx: Writer) => before(tx).then(async () => await work(tx));
    // There is one writer, so writes of all aggregates are serialized already.
    if (keepsFacts) return this.#writer.write(checked);
    return this.#listeners.around(keys, checked, (told) => this.#writer.write(told));
  }

  appends(): boolean {
    return true;
  }

  append<Input, Output>(
    kind: AppendKind<Input, Output>,
    input: Input,
  ): Promise<Output | undefined> {
    return this.#writer.append((tx) => kind.apply(tx, input));
  }

  watch(listener: WriteListener): void {
    this.#listeners.add(listener);
  }

  async define<T>(work: (tx: Writer) => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error('storage is closed');
    // A whole table may be rewritten or sorted: too large for memory.
    this.#write.execute(undoOnDisk);
    this.#write.execute(synchronous.commit);
    try {
      return await this.#writer.write(work);
    } finally {
      this.#write.execute(undoInMemory);
      if (this.#flush !== undefined) this.#write.execute(synchronous.pool);
    }
  }

  async space(): Promise<DatabaseSpace> {
    const { pageSize, pages, unused } = await this.read(readSpace);
    return { bytes: pages * pageSize, unused: unused * pageSize };
  }

  async reclaim(): Promise<boolean> {
    if (!isWorthReclaiming(await this.read(readSpace))) return false;
    await this.#writer.append(reclaimStep);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writer.close();
    await this.#checkpoints?.[Symbol.asyncDispose]();
    // After a flush that failed, one may still be there.
    this.#snapshots?.drop();
    await this.#readers.close();
    this.#flush?.[Symbol.dispose]();
    this.#write.close();
    this.#checks.dispose();
    this.#lock?.close();
  }
}
