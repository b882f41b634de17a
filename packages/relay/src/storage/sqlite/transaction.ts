import { turnMilliseconds } from '../../event-loop.ts';
import type { Row, SqlValue, StorageFaults, Writer } from '../types.ts';
import { type Statements, SyncTransaction } from './sync-transaction.ts';

/** Statements of a turn of the event loop at most; rows count a tenth. */
const statementsPerTurn = 400;

/**
 * A transaction's access to its connection; throws after the transaction has ended. One with many
 * statements pauses now and then, so that it does not hold the event loop.
 */
export class SqliteTransaction implements Writer {
  readonly #sync: SyncTransaction;
  #statements = 0;
  /** When it began to work in this turn, on the clock of `performance.now`. */
  #began = performance.now();
  /** Resolves in the next turn, while the transaction waits for it. */
  #pause: Promise<void> | undefined;

  constructor(connection: Statements, faults: StorageFaults) {
    this.#sync = new SyncTransaction(connection, faults);
  }

  /** The error of the first failed statement; then nothing of the transaction is stored. */
  get failure(): unknown {
    return this.#sync.failure;
  }

  /** Whether a statement may have changed something. */
  get hasChanged(): boolean {
    return this.#sync.hasChanged;
  }

  /** Whether the transaction waits for its next turn. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  async get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    while (this.#pause !== undefined) await this.#pause;
    const row = this.#sync.get<T>(sql, ...values);
    this.#count(1);
    return row;
  }

  async all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    while (this.#pause !== undefined) await this.#pause;
    const rows = this.#sync.all<T>(sql, ...values);
    this.#count(1 + rows.length / 10);
    return rows;
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    while (this.#pause !== undefined) await this.#pause;
    const changes = this.#sync.run(sql, ...values);
    this.#count(1);
    return changes;
  }

  end(): void {
    this.#sync.end();
  }

  /** Counts statements and time; at the end of its turn, all that follow wait for the next one. */
  #count(statements: number): void {
    this.#statements += statements;
    const isOver = performance.now() - this.#began >= turnMilliseconds;
    if (!isOver && this.#statements < statementsPerTurn) return;
    this.#statements = 0;
    this.#pause = new Promise((resolve) => {
      setImmediate(() => {
        this.#pause = undefined;
        this.#began = performance.now();
        resolve();
      });
    });
  }
}
