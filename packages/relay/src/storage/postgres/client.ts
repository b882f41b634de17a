/** One connection to PostgreSQL: its driver settings, its session settings and how it ends. */
import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import { Client, type ClientConfig, types } from 'pg';
import { ConnectionLost } from './errors.ts';
import type { PostgresTimeouts } from './timeouts.ts';

/** The oldest PostgreSQL version that still gets corrections. */
const oldestVersion = 130_000;

const oids = { bool: 16, int8: 20, numeric: 1_700 } as const;

/** Parses an integer; stores use safe integers only. */
function toInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is not a safe integer`);
  return value;
}

function parserOf(oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  if (oid === oids.bool) return (text) => (text === 't' ? 1 : 0);
  if (oid === oids.int8 || oid === oids.numeric) return toInteger;
  return types.getTypeParser(oid, format as 'text');
}

/** Returns the driver's settings of a connection. */
export function clientConfig(url: string, timeouts: PostgresTimeouts): ClientConfig {
  return {
    connectionString: url,
    application_name: 'posthouse',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Sends each statement without waiting for the answers to earlier ones.
    pipeline: true,
    connectionTimeoutMillis: timeouts.connect,
    query_timeout: timeouts.answer,
    types: { getTypeParser: parserOf },
  };
}

/** A connection whose failure does not end the process, and which closes in bounded time. */
export class PostgresClient extends Client {
  /** Its key in the table of commits; unique for ever. */
  readonly id: string = randomUUID();
  /** The number of its last write. */
  writes = 0;
  readonly #socket: Socket;
  readonly #ended: Promise<void>;

  constructor(config: ClientConfig = {}) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    this.#ended = new Promise((resolve) => this.once('end', resolve));
    // The current statement rejects with the error as well. An `error` event without a listener would
    // end the process, and the pool has no listener while it hands a connection over.
    this.on('error', () => {});
  }

  /** Breaks the connection; the server is told nothing. */
  break(): void {
    this.#socket.destroy();
  }

  /** Ends the connection and waits for it as {@link closed} does. */
  async close(timeout: number): Promise<void> {
    void this.end();
    await this.closed(timeout);
  }

  /**
   * Resolves when the connection has ended. An unreachable server never ends its side, and an open
   * socket would keep the process alive: it is destroyed after `timeout` milliseconds.
   */
  async closed(timeout: number): Promise<void> {
    const timer = setTimeout(() => this.#socket.destroy(), timeout);
    await this.#ended;
    clearTimeout(timer);
  }
}

/**
 * Applies the session settings the engine needs, overriding those of the database, the user and the
 * URL, and refuses a server that the engine cannot work with.
 *
 * @throws Error with a sentence for operators; ConnectionLost if a later attempt may succeed
 */
export async function prepareSession(
  client: PostgresClient,
  timeouts: PostgresTimeouts,
): Promise<void> {
  const { rows } = await client.query<{
    version: number;
    encoding: string;
    standby: number;
  }>({ text: sessionSql(timeouts), query_timeout: timeouts.connect } as { text: string });
  const [found] = rows;
  if (found === undefined) throw new ConnectionLost('PostgreSQL did not return its settings');
  if (found.version < oldestVersion)
    throw new Error('PostgreSQL 13 or later is needed: upgrade the server');
  if (found.encoding !== 'UTF8') {
    throw new Error(
      `the database has the encoding ${found.encoding}, UTF8 is needed: create one with \`createdb --encoding UTF8 --template template0\``,
    );
  }
  if (found.standby === 1)
    throw new ConnectionLost(
      'the server is a standby and accepts no writes: connect to the primary',
    );
}

function sessionSql(timeouts: PostgresTimeouts): string {
  const settings: Readonly<Record<string, string>> = {
    client_encoding: 'UTF8',
    lock_timeout: `${timeouts.lock}`,
    idle_in_transaction_session_timeout: `${timeouts.idleInTransaction}`,
    statement_timeout: `${timeouts.statement}`,
    // A client machine that fails sends nothing; its locks must be free in less than a minute.
    tcp_keepalives_idle: '10',
    tcp_keepalives_interval: '5',
    tcp_keepalives_count: '3',
    // Only a transaction begun as READ WRITE may write: statements are sent before the answer to
    // BEGIN arrives, and must change nothing if BEGIN fails.
    default_transaction_read_only: 'on',
    // Every statement of the stores concerns a few rows that an index finds. For tables that were
    // empty at the last ANALYZE, the planner would choose full scans and reuse such a plan while
    // they grow; so full scans are off, and each connection plans once, whatever the values are.
    enable_seqscan: 'off',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    // For the first few due rows, the planner would find and sort all due rows.
    enable_bitmapscan: 'off',
    plan_cache_mode: 'force_generic_plan',
    // Compiling does not pay off for small statements.
    jit: 'off',
  };
  const set = Object.entries(settings).map(
    ([name, value]) => `set_config('${name}', '${value}', false)`,
  );
  return `SELECT ${set.join(', ')},
    -- A successful commit is on disk, whatever the server's own setting is.
    set_config('synchronous_commit',
      replace(current_setting('synchronous_commit'), 'off', 'on'), false),
    current_setting('server_version_num')::int AS version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby`;
}
