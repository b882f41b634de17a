/** Who uses the database: session locks that the server takes back when a process dies. */
import { type MarkRow, markOf, markRefusal, markSql, moveTable } from '../move/mark.ts';
import { clientConfig, PostgresClient, prepareSession } from './client.ts';
import { makeCommits } from './commits.ts';
import { ConnectionLost } from './errors.ts';
import { locks } from './sql.ts';
import type { PostgresTimeouts } from './timeouts.ts';

/**
 * Who else may have the database open:
 * - `alone`: no other relay process;
 * - `together`: other processes of this relay that say so too;
 * - `alongside`: any relay processes; this one is a command of the operator;
 * - `exclusive`: nobody; all other connections are refused.
 */
export type LockMode = 'alone' | 'together' | 'alongside' | 'exclusive';

/** Of a connection for statements: while one is open, nobody gets the database exclusively. */
export const useSql = `SELECT pg_try_advisory_lock_shared(${locks.use}) AS taken`;

/**
 * Comes behind {@link useSql}, which keeps moves away: a process that was cut off from the database
 * while it was moved must not go on with what was left behind.
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

interface Step {
  readonly sql: string;
  readonly refusal: string;
}

const using: Step = { sql: useSql, refusal: 'the database is being moved' };

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

/** Somebody else has a place that excludes this one. */
class LockTaken extends Error {}

/** The server starts or recovers (cannot_connect_now), or does not listen yet. */
const startingUp: readonly (string | undefined)[] = ['57P03', 'ECONNREFUSED'];

/** This process's place. One that is lost with its connection is asked for again. */
export class ProcessLock {
  readonly #url: string;
  readonly #lockMode: LockMode;
  readonly #timeouts: PostgresTimeouts;
  readonly #displaced: (error: unknown) => void;
  #client: PostgresClient | undefined;
  #asking: Promise<void> = Promise.resolve();
  #retry: NodeJS.Timeout | undefined;
  #taken: unknown;
  #isClosed = false;

  constructor(
    url: string,
    parts: {
      readonly lockMode: LockMode;
      readonly timeouts: PostgresTimeouts;
      /** Hears, once for each time, that somebody else took the place while it was lost. */
      readonly onLost: (error: unknown) => void;
    },
  ) {
    this.#url = url;
    this.#lockMode = parts.lockMode;
    this.#timeouts = parts.timeouts;
    this.#displaced = parts.onLost;
  }

  /** Whether this process has its place. */
  get isHeld(): boolean {
    return this.#client !== undefined;
  }

  /** Who took the place while it was lost; nothing where nobody is known to have it. */
  get lostTo(): unknown {
    return this.#taken;
  }

  /** @throws Error where somebody has a place that excludes this one, or the server is no good */
  async acquire(): Promise<void> {
    const until = performance.now() + this.#timeouts.start;
    for (;;) {
      try {
        await this.#ask();
        return;
      } catch (error) {
        // A killed process's sessions may linger for a moment.
        const passes =
          error instanceof LockTaken || startingUp.includes((error as { code?: string }).code);
        if (!passes || performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, this.#timeouts.lockRetry));
      }
    }
  }

  async release(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    await this.#asking.catch(() => {});
    await this.#client?.close(this.#timeouts.close);
    this.#client = undefined;
  }

  async #ask(): Promise<void> {
    const client = new PostgresClient(clientConfig(this.#url, this.#timeouts));
    try {
      await client.connect();
      await prepareSession(client, this.#timeouts);
      for (const { sql, refusal } of steps[this.#lockMode]) {
        const { rows } = await client.query<{ taken: number }>(sql);
        if (rows[0]?.taken !== 1) throw new LockTaken(refusal);
      }
      if (this.#lockMode !== 'exclusive') await checkMark(client);
      // The database may be nobody's yet: only a relay makes something in it.
      if (this.#lockMode !== 'alongside') await makeCommits(client);
    } catch (error) {
      await client.close(this.#timeouts.close);
      throw error;
    }
    this.#client = client;
    this.#taken = undefined;
    client.once('end', () => this.#lose());
  }

  #lose(): void {
    this.#client = undefined;
    this.#askAgain(this.#displaced);
  }

  #askAgain(displaced: (error: unknown) => void): void {
    if (this.#isClosed) return;
    this.#retry = setTimeout(() => {
      this.#asking = this.#ask().catch((error: unknown) => {
        const isTaken = error instanceof LockTaken;
        if (isTaken) {
          this.#taken = error;
          displaced(error);
        }
        this.#askAgain(isTaken ? () => {} : displaced);
      });
    }, this.#timeouts.lockRetry);
  }
}
