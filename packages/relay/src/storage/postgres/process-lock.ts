/** Locks of processes on a database: session locks that the server releases when a process dies. */
import { type MarkRow, markOf, markRefusal, markSql, moveTable } from '../move/mark.ts';
import { clientConfig, PostgresClient, prepareSession } from './client.ts';
import { makeCommits } from './commits.ts';
import { ConnectionLost } from './errors.ts';
import { locks } from './sql.ts';
import type { PostgresTimeouts } from './timeouts.ts';

/**
 * Which other processes may have the database open:
 * - `alone`: no other relay process;
 * - `together`: other processes of this relay that use `together` too;
 * - `alongside`: any relay processes; this one is an operator's command;
 * - `exclusive`: none; all other connections are refused.
 */
export type LockMode = 'alone' | 'together' | 'alongside' | 'exclusive';

/** Taken by every pooled connection: while one is open, no process gets the database exclusively. */
export const useSql = `SELECT pg_try_advisory_lock_shared(${locks.use}) AS taken`;

/**
 * Refuses a database that was moved: a process that lost its connection during a move must not
 * continue on the old copy. Call it after {@link useSql}, which blocks moves.
 *
 * @throws ConnectionLost that says what to do
 */
export async function checkMark(client: PostgresClient): Promise<void> {
  const table = await client.query<{ there: number }>(
    `SELECT to_regclass('${moveTable}') IS NOT NULL AS there`,
  );
  if (table.rows[0]?.there !== 1) return;
  const { rows } = await client.query<MarkRow>(markSql);
  const refusal = markRefusal(rows[0] && markOf(rows[0]));
  if (refusal !== undefined) throw new ConnectionLost(refusal);
}

/** A lock to take, and the message if another process holds it. */
interface Step {
  readonly sql: string;
  readonly refusal: string;
}

const using: Step = {
  sql: useSql,
  refusal: 'the database is being moved: wait until the move has ended',
};

const steps: Readonly<Record<LockMode, readonly Step[]>> = {
  alone: [
    using,
    {
      sql: `SELECT pg_try_advisory_lock(${locks.relay}) AS taken`,
      refusal: 'another relay process uses the database; several need `bus.nats`, each of them',
    },
  ],
  together: [
    using,
    {
      sql: `SELECT pg_try_advisory_lock_shared(${locks.relay}) AS taken`,
      refusal: 'a relay process without `bus.nats` uses the database',
    },
  ],
  alongside: [using],
  exclusive: [
    {
      sql: `SELECT pg_try_advisory_lock(${locks.use}) AS taken`,
      refusal: 'a relay process uses the database; stop it first',
    },
  ],
};

/** Another process holds a lock that excludes this one. */
class LockTaken extends Error {}

/** Codes of a server that is starting or recovering (cannot_connect_now), or not listening yet. */
const startingUp: readonly (string | undefined)[] = ['57P03', 'ECONNREFUSED'];

/** This process's lock on the database. If its connection breaks, it is acquired again. */
export class ProcessLock {
  readonly #url: string;
  readonly #lockMode: LockMode;
  readonly #timeouts: PostgresTimeouts;
  readonly #onLost: (error: unknown) => void;
  #heldAgain: () => void = () => {};
  #client: PostgresClient | undefined;
  #acquiring: Promise<void> = Promise.resolve();
  #retry: NodeJS.Timeout | undefined;
  #refusal: unknown;
  #isClosed = false;

  constructor(
    url: string,
    parts: {
      readonly lockMode: LockMode;
      readonly timeouts: PostgresTimeouts;
      /** Called once each time another process took the lock while the connection was broken. */
      readonly onLost: (error: unknown) => void;
    },
  ) {
    this.#url = url;
    this.#lockMode = parts.lockMode;
    this.#timeouts = parts.timeouts;
    this.#onLost = parts.onLost;
  }

  /** Whether this process holds its lock. */
  get isHeld(): boolean {
    return this.#client !== undefined;
  }

  /** The refusal, if another process took the lock while the connection was broken. */
  get lostTo(): unknown {
    return this.#refusal;
  }

  /**
   * Acquires the lock, with retries while a killed process's lock lingers or the server starts.
   * @throws Error if another process holds a lock that excludes this one, or the server is unusable
   */
  async acquire(): Promise<void> {
    const until = performance.now() + this.#timeouts.start;
    for (;;) {
      try {
        await this.#tryAcquire();
        return;
      } catch (error) {
        // The sessions of a killed process may linger for a moment.
        const isTemporary =
          error instanceof LockTaken || startingUp.includes((error as { code?: string }).code);
        if (!isTemporary || performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, this.#timeouts.lockRetry));
      }
    }
  }

  /** Sets what is called each time the lock is held again after its connection was broken. */
  onHeldAgain(listener: () => void): void {
    this.#heldAgain = listener;
  }

  /** Asks the server for an answer on the connection of the lock; rejects if there is none. */
  async probe(): Promise<void> {
    if (this.#client === undefined) throw new ConnectionLost('the lock is not held');
    await this.#client.query('SELECT 1');
  }

  /** Breaks the connection of the lock, which is then acquired again. */
  break(): void {
    this.#client?.break();
  }

  /** Releases the lock and stops acquiring it. */
  async release(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#acquiring.catch(() => {});
    await this.#client?.close(this.#timeouts.close);
    this.#client = undefined;
  }

  async #tryAcquire(): Promise<void> {
    const client = new PostgresClient(clientConfig(this.#url, this.#timeouts));
    try {
      await client.connect();
      await prepareSession(client, this.#timeouts);
      for (const { sql, refusal } of steps[this.#lockMode]) {
        const { rows } = await client.query<{ taken: number }>(sql);
        if (rows[0]?.taken !== 1) throw new LockTaken(refusal);
      }
      if (this.#lockMode !== 'exclusive') await checkMark(client);
      // The database may be new: only a relay creates tables in it.
      if (this.#lockMode !== 'alongside') await makeCommits(client);
    } catch (error) {
      await client.close(this.#timeouts.close);
      throw error;
    }
    this.#client = client;
    this.#refusal = undefined;
    client.once('end', () => this.#onEnd());
  }

  #onEnd(): void {
    this.#client = undefined;
    this.#retryLater(this.#onLost);
  }

  #retryLater(onLost: (error: unknown) => void): void {
    if (this.#isClosed) return;
    this.#retry = setTimeout(() => {
      this.#acquiring = this.#tryAcquire().then(this.#heldAgain, (error: unknown) => {
        const isTaken = error instanceof LockTaken;
        if (isTaken) {
          this.#refusal = error;
          onLost(error);
        }
        this.#retryLater(isTaken ? () => {} : onLost);
      });
    }, this.#timeouts.lockRetry);
  }
}
