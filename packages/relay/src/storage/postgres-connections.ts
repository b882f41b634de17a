import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient, types } from 'pg';
import { ConnectionLost, ConnectionsBusy, fromDriver } from './postgres-errors.ts';

/** Milliseconds after which the server, or failing that this side, gives up. */
const timeouts = {
  connect: 5_000,
  lock: 10_000,
  /** A process that stands still must not keep the locks of its accounts. */
  idleInTransaction: 10_000,
  statement: 30_000,
  answer: 35_000,
} as const;

/** `pg_current_xact_id` and `pg_xact_status` are there from this version on. */
const oldestVersion = 130_000;

/** The first half of the numbers this relay locks in PostgreSQL, beside those of aggregates. */
const lockSpace = 0x706f7374;
const locks = { presence: `${lockSpace}, 1`, alone: `${lockSpace}, 2` } as const;

/**
 * Who else may have the database open:
 * - `alone`: no other relay process;
 * - `together`: other processes of this relay that say so too;
 * - `exclusive`: nobody; all other connections are refused.
 */
export type Presence = 'alone' | 'together' | 'exclusive';

const int8 = 20;
const numeric = 1_700;

/** Integers as numbers: stores ask for nothing that is not safe. */
function toInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is no safe integer`);
  return value;
}

function clientConfig(url: string): ClientConfig {
  return {
    connectionString: url,
    application_name: 'posthouse',
    keepAlive: true,
    pipeline: true,
    connectionTimeoutMillis: timeouts.connect,
    lock_timeout: timeouts.lock,
    idle_in_transaction_session_timeout: timeouts.idleInTransaction,
    statement_timeout: timeouts.statement,
    query_timeout: timeouts.answer,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === int8 || oid === numeric ? toInteger : types.getTypeParser(oid, format as 'text'),
    },
  };
}

/** What the driver says when no connection came free in time; it has no code for it. */
const poolTimeout = 'timeout exceeded when trying to connect';

/** A connection on loan. */
export interface Lent {
  readonly client: PoolClient;
  /** The server's history: a standby that took over has another, where numbers mean others. */
  readonly timeline: string;
  /** Gives it back; with an error it is closed instead. */
  release(error?: unknown): void;
}

/**
 * The connections of one process to its database, all of the same settings. While one of them is
 * open, nobody has the database exclusively.
 */
export class PostgresConnections {
  readonly #pool: Pool;
  readonly #timelines = new WeakMap<ClientBase, string>();

  constructor(
    url: string,
    { most, presence }: { readonly most: number; readonly presence: Presence },
  ) {
    this.#pool = new Pool({
      ...clientConfig(url),
      max: most,
      idleTimeoutMillis: 60_000,
      onConnect: async (client: ClientBase) => {
        this.#timelines.set(client, await prepareConnection(client, presence));
      },
    });
    // An idle connection that ends is replaced when one is needed.
    this.#pool.on('error', () => {});
  }

  /** @throws ConnectionLost, ConnectionsBusy, or what the server refuses the connection with */
  async lend(): Promise<Lent> {
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      if ((error as Error).message !== poolTimeout) throw fromDriver(error);
      throw new ConnectionsBusy('every connection to PostgreSQL is at work', { cause: error });
    }
    // The failed statement tells as well; without a listener it would end the process.
    const ignore = () => {};
    client.on('error', ignore);
    return {
      client,
      timeline: this.#timelines.get(client) ?? '',
      release(error) {
        client.off('error', ignore);
        client.release(error !== undefined);
      },
    };
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}

/**
 * Refuses a server that cannot keep the engine's promises.
 * @returns its timeline
 */
async function prepareConnection(client: ClientBase, presence: Presence): Promise<string> {
  const { rows } = await client.query<{
    version: number;
    encoding: string;
    durability: string;
    timeline: string | null;
    present: boolean;
  }>(`SELECT current_setting('server_version_num')::int AS version,
      current_setting('server_encoding') AS encoding,
      current_setting('synchronous_commit') AS durability,
      CASE WHEN pg_is_in_recovery() THEN NULL
        ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
      ${presence === 'exclusive' ? 'true' : `pg_try_advisory_lock_shared(${locks.presence})`}
        AS present`);
  const [found] = rows;
  if (found === undefined) throw new ConnectionLost('PostgreSQL does not tell its settings');
  if (found.version < oldestVersion) throw new Error('PostgreSQL 13 or later is needed');
  if (found.encoding !== 'UTF8') {
    throw new Error(`the database has the encoding ${found.encoding}, UTF8 is needed`);
  }
  if (found.timeline === null) throw new ConnectionLost('the server is a standby');
  if (!found.present) throw new ConnectionLost('the database is being moved');
  // Success means that it is on the disk, whatever else the server is set up for.
  if (found.durability === 'off') await client.query('SET synchronous_commit = on');
  return found.timeline;
}

/** Milliseconds between tries to get the place back, and a killed process's sessions may linger. */
const retryInterval = 500;
const startPatience = 5_000;

/**
 * This process's place among those that use the database: a lock that the server takes back when
 * the process dies. A place that is lost with its connection is asked for again.
 */
export class PostgresPlace {
  readonly #url: string;
  readonly #presence: Presence;
  readonly #displaced: (error: unknown) => void;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param displaced hears that somebody else took the place while the connection was away */
  constructor(url: string, presence: Presence, displaced: (error: unknown) => void) {
    this.#url = url;
    this.#presence = presence;
    this.#displaced = displaced;
  }

  /** Whether this process has its place. */
  get isHeld(): boolean {
    return this.#client !== undefined;
  }

  /** @throws Error where another process has a place that excludes this one */
  async take(): Promise<void> {
    const until = performance.now() + startPatience;
    for (;;) {
      try {
        await this.#connect();
        return;
      } catch (error) {
        if (!(error instanceof PlaceTaken) || performance.now() > until) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryInterval));
      }
    }
  }

  async leave(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = undefined;
    await client?.end();
  }

  async #connect(): Promise<void> {
    const client = new Client(clientConfig(this.#url));
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<{ taken: boolean }>(
        `SELECT ${placeSql(this.#presence)} AS taken`,
      );
      if (rows[0]?.taken !== true) throw new PlaceTaken(whoElse[this.#presence]);
    } catch (error) {
      await client.end().catch(() => {});
      throw error instanceof PlaceTaken ? error : fromDriver(error);
    }
    if (this.#isClosed) {
      await client.end();
      return;
    }
    this.#client = client;
    client.on('end', () => this.#gone());
  }

  #gone(): void {
    if (this.#isClosed) return;
    this.#client = undefined;
    this.#retry = setTimeout(() => {
      this.#connect().catch((error: unknown) => {
        if (error instanceof PlaceTaken) this.#displaced(error);
        this.#gone();
      });
    }, retryInterval);
  }
}

class PlaceTaken extends Error {}

function placeSql(presence: Presence): string {
  switch (presence) {
    case 'alone':
      return `pg_try_advisory_lock(${locks.alone})`;
    case 'together':
      return `pg_try_advisory_lock_shared(${locks.alone})`;
    case 'exclusive':
      return `pg_try_advisory_lock(${locks.presence})`;
  }
}

const whoElse: Readonly<Record<Presence, string>> = {
  alone: 'another relay process uses the database; several need `bus.nats`, each of them',
  together: 'a relay process without `bus.nats` uses the database',
  exclusive: 'a relay process uses the database; stop it first',
};
