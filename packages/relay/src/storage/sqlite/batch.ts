import { TurnTime } from '../../event-loop.ts';
import type { StorageFaults, SyncWriter, Writer } from '../types.ts';
import type { SqliteConnection } from './connection.ts';
import { failureKind, type Outage } from './failures.ts';
import { SyncTransaction } from './sync-transaction.ts';
import { SqliteTransaction } from './transaction.ts';

/** A write that waits for its batch, or for the end of it. */
export type WaitingWrite = {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
} & (
  | { readonly kind: 'write'; readonly work: (tx: Writer) => Promise<unknown> }
  | { readonly kind: 'append'; readonly work: (tx: SyncWriter) => unknown }
);

type GeneralWrite = Extract<WaitingWrite, { kind: 'write' }>;
type WaitingAppend = Extract<WaitingWrite, { kind: 'append' }>;

export interface BatchParts {
  readonly connection: SqliteConnection;
  readonly faults: StorageFaults;
  readonly outage: Outage;
}

/**
 * The writes of one transaction. They run without savepoints until one fails after a change: then the
 * transaction is undone, the others run again, and from there each has a savepoint. So no batch runs
 * more than twice, whatever its writes do.
 */
export class Batch {
  readonly #parts: BatchParts;
  readonly #begin: () => Promise<void>;
  readonly #writes: WaitingWrite[] = [];
  /** Answers each write, in order. */
  #answers: (() => void)[] = [];
  #hasSavepoints = false;
  #hasChanged = false;

  /** @param begin begins a transaction */
  constructor(parts: BatchParts, begin: () => Promise<void>) {
    this.#parts = parts;
    this.#begin = begin;
  }

  /** Whether there may be something to make durable. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  get size(): number {
    return this.#writes.length;
  }

  /**
   * Runs a write; returns a promise only if there is something to wait for.
   *
   * @throws if the transaction itself is lost, which fails the batch
   */
  run(write: WaitingWrite): Promise<void> | undefined {
    this.#writes.push(write);
    const isKept = this.#runOnce(write);
    if (isKept === true) return undefined;
    return this.#keepOthers(isKept);
  }

  /** Answers all writes, after the commit. */
  answer(): void {
    for (const answer of this.#answers) answer();
  }

  /** Rejects all writes, after the transaction was undone. */
  reject(error: unknown): void {
    for (const { reject } of this.#writes) reject(error);
  }

  /** Undoes the batch if the last write left changes, and does all others again. */
  async #keepOthers(isLastKept: boolean | Promise<boolean>): Promise<void> {
    if (await isLastKept) return;
    const failed = this.#answers.at(-1) as () => void;
    this.#answers = [];
    this.#hasSavepoints = true;
    this.#parts.connection.run('ROLLBACK', []);
    await this.#begin();
    const turn = new TurnTime();
    for (const write of this.#writes.slice(0, -1)) {
      if (turn.isOver) await turn.next();
      await this.#runOnce(write);
    }
    this.#answers.push(failed);
  }

  /** @returns whether what the write left in the transaction may be committed */
  #runOnce(write: WaitingWrite): boolean | Promise<boolean> {
    const { connection } = this.#parts;
    if (this.#hasSavepoints) connection.run('SAVEPOINT work', []);
    return write.kind === 'append' ? this.#append(write) : this.#write(write);
  }

  #append(write: WaitingAppend): boolean {
    const tx = new SyncTransaction(this.#parts.connection, this.#parts.faults);
    try {
      return this.#succeeded(write, tx, write.work(tx));
    } catch (error) {
      return this.#failed(write, tx, error);
    } finally {
      tx.end();
    }
  }

  async #write(write: GeneralWrite): Promise<boolean> {
    const { connection, faults } = this.#parts;
    const tx = new SqliteTransaction(connection, faults);
    try {
      return this.#succeeded(write, tx, await withoutWaiting(tx, write.work(tx)));
    } catch (error) {
      return this.#failed(write, tx, error);
    } finally {
      tx.end();
    }
  }

  #succeeded({ resolve }: WaitingWrite, tx: Ended, value: unknown): true {
    if (tx.failure !== undefined) throw new Error('a write continued after a failed statement');
    if (this.#hasSavepoints) this.#parts.connection.run('RELEASE work', []);
    this.#hasChanged ||= tx.hasChanged;
    this.#answers.push(() => resolve(value));
    return true;
  }

  #failed({ reject }: WaitingWrite, tx: Ended, error: unknown): boolean {
    const { connection, outage } = this.#parts;
    // SQLite undoes the whole transaction by itself when the disk is full or broken.
    if (!connection.isInTransaction) throw tx.failure ?? error;
    if (this.#hasSavepoints) {
      connection.run('ROLLBACK TO work', []);
      connection.run('RELEASE work', []);
    }
    const isCause = failureKind(tx.failure) !== 'refused';
    const reason = outage.errorOf(isCause ? tx.failure : error);
    this.#answers.push(() => reject(reason));
    return this.#hasSavepoints || !tx.hasChanged;
  }
}

/** What a transaction left. */
type Ended = Pick<SyncTransaction, 'failure' | 'hasChanged'>;

/**
 * Rejects if a write awaits anything but its transaction, which answers within the same turn of the
 * event loop unless it pauses: waiting for something else would block every other write.
 */
async function withoutWaiting<T>(tx: SqliteTransaction, promise: Promise<T>): Promise<T> {
  const { promise: waited, reject } = Promise.withResolvers<never>();
  const check = () => {
    if (tx.isPaused) turn = setImmediate(check);
    else reject(new Error('a write awaited more than its transaction'));
  };
  let turn = setImmediate(check);
  try {
    return await Promise.race([promise, waited]);
  } finally {
    clearImmediate(turn);
  }
}
