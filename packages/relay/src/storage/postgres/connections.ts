/** The connection pool of one process; all connections have the same settings. */
import { Pool, type PoolClient } from 'pg';
import { clientConfig, PostgresClient, prepareSession } from './client.ts';
import { forgetCommits } from './commits.ts';
import { ConnectionLost, fromConnecting } from './errors.ts';
import { checkMark, type LockMode, useSql } from './process-lock.ts';
import type { PostgresTimeouts } from './timeouts.ts';

/** Milliseconds after which an unused connection is closed. */
const idleTimeout = 60_000;

/** A connection taken from the pool. */
export interface Lease {
  readonly client: PostgresClient;
  /** Returns it to the pool; with an error it is closed instead. */
  release(error?: unknown): void;
}

/** A pool of prepared connections, with a limit. */
export class PostgresConnections {
  readonly #pool: Pool;
  readonly #timeouts: PostgresTimeouts;
  readonly #open = new Set<PostgresClient>();

  constructor(
    url: string,
    parts: {
      /** Maximum number of connections. */
      readonly limit: number;
      readonly lockMode: LockMode;
      readonly timeouts: PostgresTimeouts;
    },
  ) {
    this.#timeouts = parts.timeouts;
    this.#pool = new Pool({
      ...clientConfig(url, parts.timeouts),
      Client: PostgresClient,
      max: parts.limit,
      idleTimeoutMillis: idleTimeout,
      onConnect: (client) => this.#prepare(client as PostgresClient, parts.lockMode),
    });
    // The pool replaces an idle connection that ended when one is needed.
    this.#pool.on('error', () => {});
  }

  /**
   * Waits for a free connection.
   * @throws ConnectionLost, ConnectionsBusy, or DatabaseError if the server has no room
   */
  async acquire(): Promise<Lease> {
    try {
      const client = (await this.#pool.connect()) as PoolClient & PostgresClient;
      return { client, release: (error) => client.release(error !== undefined) };
    } catch (error) {
      throw fromConnecting(error);
    }
  }

  /** Breaks all connections. */
  breakAll(): void {
    for (const client of this.#open) client.break();
  }

  /** Ends all connections; all must have been released. */
  async close(): Promise<void> {
    await this.#pool.end();
    await Promise.all([...this.#open].map((client) => client.closed(this.#timeouts.close)));
  }

  async #prepare(client: PostgresClient, lockMode: LockMode): Promise<void> {
    this.#open.add(client);
    client.once('end', () => this.#open.delete(client));
    await prepareSession(client, this.#timeouts);
    if (lockMode !== 'alongside') await forgetCommits(client);
    if (lockMode === 'exclusive') return;
    const { rows } = await client.query<{ taken: number }>(useSql);
    if (rows[0]?.taken !== 1)
      throw new ConnectionLost('the database is being moved: wait until the move has ended');
    await checkMark(client);
  }
}

/** Rolls a transaction back, then releases its connection. */
export function rollBack(lease: Lease): void {
  lease.client.query('ROLLBACK').then(
    () => lease.release(),
    (error: unknown) => lease.release(error),
  );
}
