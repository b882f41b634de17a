/** The connections of one process for its statements, all of the same settings. */
import { Pool, type PoolClient } from 'pg';
import { clientConfig, PostgresClient, prepareSession } from './client.ts';
import { forgetCommits } from './commits.ts';
import { ConnectionLost, fromConnecting } from './errors.ts';
import { checkMark, type Presence, useSql } from './process-lock.ts';
import type { PostgresWaits } from './timeouts.ts';

/** Milliseconds after which an unused connection is closed. */
const idleTimeout = 60_000;

/** A connection on loan. */
export interface Lent {
  readonly client: PostgresClient;
  /** Gives it back; with an error it is closed instead. */
  release(error?: unknown): void;
}

export class PostgresConnections {
  readonly #pool: Pool;
  readonly #waits: PostgresWaits;
  readonly #open = new Set<PostgresClient>();

  constructor(
    url: string,
    parts: {
      /** Connections at the most. */
      readonly most: number;
      readonly presence: Presence;
      readonly waits: PostgresWaits;
    },
  ) {
    this.#waits = parts.waits;
    this.#pool = new Pool({
      ...clientConfig(url, parts.waits),
      Client: PostgresClient,
      max: parts.most,
      idleTimeoutMillis: idleTimeout,
      onConnect: (client) => this.#prepare(client as PostgresClient, parts.presence),
    });
    // An idle connection that ends is replaced when one is needed.
    this.#pool.on('error', () => {});
  }

  /** @throws ConnectionLost, ConnectionsBusy, or DatabaseError where the server has no room */
  async lend(): Promise<Lent> {
    try {
      const client = (await this.#pool.connect()) as PoolClient & PostgresClient;
      return { client, release: (error) => client.release(error !== undefined) };
    } catch (error) {
      throw fromConnecting(error);
    }
  }

  /** Ends all connections. None is on loan any more. */
  async close(): Promise<void> {
    await this.#pool.end();
    await Promise.all([...this.#open].map((client) => client.over(this.#waits.close)));
  }

  async #prepare(client: PostgresClient, presence: Presence): Promise<void> {
    this.#open.add(client);
    client.once('end', () => this.#open.delete(client));
    await prepareSession(client, this.#waits);
    if (presence !== 'beside') await forgetCommits(client);
    if (presence === 'exclusive') return;
    const { rows } = await client.query<{ taken: number }>(useSql);
    if (rows[0]?.taken !== 1) throw new ConnectionLost('the database is being moved');
    await checkMark(client);
  }
}
