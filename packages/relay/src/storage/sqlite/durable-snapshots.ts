import type { Reader, Row, SqlValue, StorageFaults } from '../types.ts';
import type { SqliteConnection } from './connection.ts';
import { failureKind } from './failures.ts';
import type { Readers } from './readers.ts';
import { SqliteTransaction } from './transaction.ts';
import type { WalFlush } from './wal-flush.ts';

/** Commits for which snapshots are taken after a read that could use one. */
const commitsOfRead = 16;

/** What is committed at one moment, for any number of reads at once. */
class Snapshot {
  readonly #connection: SqliteConnection;
  readonly #release: (connection: SqliteConnection) => void;
  #reads = 0;
  #isDropped = false;

  /** @param release takes the connection back when the snapshot was dropped and its reads have ended */
  constructor(connection: SqliteConnection, release: (connection: SqliteConnection) => void) {
    this.#connection = connection;
    this.#release = release;
    // A transaction sees what is there at its first statement.
    connection.run('BEGIN', []);
    connection.get('SELECT 1 AS one FROM sqlite_schema LIMIT 1', []);
  }

  async read<T>(work: (tx: Reader) => Promise<T>, faults: StorageFaults): Promise<T> {
    const tx = new SqliteTransaction(this, faults);
    this.#reads += 1;
    try {
      return await work(tx);
    } catch (error) {
      throw failureKind(tx.failure) === 'refused' ? error : tx.failure;
    } finally {
      tx.end();
      this.#reads -= 1;
      this.#end();
    }
  }

  get(sql: string, values: readonly SqlValue[]): Row | undefined {
    return this.#open().get(sql, values);
  }

  all(sql: string, values: readonly SqlValue[]): Row[] {
    return this.#open().all(sql, values);
  }

  run(sql: string, values: readonly SqlValue[]): number {
    return this.#open().run(sql, values);
  }

  /** Begins no read any more. */
  drop(): void {
    this.#isDropped = true;
    this.#end();
  }

  /** After an error SQLite may have ended the transaction: a statement would see what is newer. */
  #open(): SqliteConnection {
    if (!this.#connection.isInTransaction) throw new Error('the snapshot was lost');
    return this.#connection;
  }

  #end(): void {
    if (!this.#isDropped || this.#reads > 0) return;
    try {
      if (this.#connection.isInTransaction) this.#connection.run('ROLLBACK', []);
    } finally {
      this.#release(this.#connection);
    }
  }
}

/**
 * What is on disk, for reads while commits wait for their flush: such a read has everything that was
 * answered, and waits for no disk. A snapshot is taken before a commit, if what is there then is on
 * disk or in the flush under way; it serves while that is the last thing on disk.
 *
 * Snapshots are taken while reads come. Without one, a read waits for the flush of what it saw.
 */
export class DurableSnapshots {
  readonly #readers: Readers;
  readonly #flush: Pick<WalFlush, 'commits' | 'flushed' | 'flushing'>;
  /** Of what is on disk, and of what will be after the flush under way. */
  #current: Snapshot | undefined;
  #next: Snapshot | undefined;
  /** Commits before which a snapshot is still taken. */
  #commitsLeft = 0;

  constructor(readers: Readers, flush: Pick<WalFlush, 'commits' | 'flushed' | 'flushing'>) {
    this.#readers = readers;
    this.#flush = flush;
  }

  /** For a read that begins now, while a commit waits for its flush; `undefined` if there is none. */
  get current(): Snapshot | undefined {
    if (this.#flush.commits === this.#flush.flushed) return undefined;
    this.#commitsLeft = commitsOfRead;
    return this.#current;
  }

  /** Call it right before each COMMIT of the writer. */
  beforeCommit(): void {
    if (this.#commitsLeft === 0) return;
    this.#commitsLeft -= 1;
    const { commits, flushed, flushing } = this.#flush;
    if (commits === flushed) this.#current ??= this.#take();
    else if (commits === flushing) this.#next ??= this.#take();
  }

  /** Call it when a flush has ended, before anybody hears of it. */
  flushed(): void {
    this.#current?.drop();
    // There is one only if a commit has followed.
    this.#current = this.#next;
    this.#next = undefined;
  }

  /** Drops all snapshots: another process has written. */
  drop(): void {
    this.#current?.drop();
    this.#next?.drop();
    this.#current = undefined;
    this.#next = undefined;
  }

  #take(): Snapshot | undefined {
    const connection = this.#readers.takeSpare();
    if (connection === undefined) return undefined;
    const release = (unused: SqliteConnection) => this.#readers.release(unused);
    try {
      return new Snapshot(connection, release);
    } catch {
      // The database is locked, or the disk fails: reads say so themselves.
      if (connection.isInTransaction) connection.run('ROLLBACK', []);
      release(connection);
      return undefined;
    }
  }
}
