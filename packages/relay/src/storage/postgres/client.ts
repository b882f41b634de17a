/** One connection to PostgreSQL, as every part of the engine uses it. */
import { randomUUID } from 'node:crypto';
import { Socket } from 'node:net';
import { Client, type ClientConfig, types } from 'pg';
import { ConnectionLost } from './errors.ts';
import type { PostgresTimeouts } from './timeouts.ts';

/** The oldest version that still gets corrections where this relay is made. */
const oldestVersion = 130_000;

const oids = { bool: 16, int8: 20, numeric: 1_700 } as const;

/** Integers as numbers: stores ask for nothing that is not safe. */
function toInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is no safe integer`);
  return value;
}

function parserOf(oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  if (oid === oids.bool) return (text) => (text === 't' ? 1 : 0);
  if (oid === oids.int8 || oid === oids.numeric) return toInteger;
  return types.getTypeParser(oid, format as 'text');
}

export function clientConfig(url: string, timeouts: PostgresTimeouts): ClientConfig {
  return {
    connectionString: url,
    application_name: 'posthouse',
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // Statements go out without waiting for the answers of those before them.
    pipeline: true,
    connectionTimeoutMillis: timeouts.connect,
    query_timeout: timeouts.answer,
    types: { getTypeParser: parserOf },
  };
}

/** A connection that does not end the process when it breaks, and ends in bounded time. */
export class PostgresClient extends Client {
  /** Its name in the table of commits; no other connection ever has it. */
  readonly id: string = randomUUID();
  /** The number of its last write. */
  writes = 0;
  readonly #socket: Socket;
  readonly #over: Promise<void>;

  constructor(config: ClientConfig = {}) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.#socket = socket;
    this.#over = new Promise((resolve) => this.once('end', resolve));
    // The statement under way fails as well, and says so. An event that nobody hears would end
    // the process, and the pool hears none of a connection that it is just giving away.
    this.on('error', () => {});
  }

  /** Ends it, see `over`. */
  async close(patience: number): Promise<void> {
    void this.end();
    await this.over(patience);
  }

  /**
   * Resolves when it has ended. A server that is gone without a word never ends its side, and an
   * open socket would keep the process: after `patience` milliseconds it is cut off.
   */
  async over(patience: number): Promise<void> {
    const timer = setTimeout(() => this.#socket.destroy(), patience);
    await this.#over;
    clearTimeout(timer);
  }
}

/**
 * Sets what a session must have, whatever the database, the user or the URL are set up for, and
 * refuses a server that cannot keep the engine's promises.
 *
 * @throws Error with a sentence for operators; ConnectionLost where the server may become right
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
  if (found === undefined) throw new ConnectionLost('PostgreSQL does not tell its settings');
  if (found.version < oldestVersion) throw new Error('PostgreSQL 13 or later is needed');
  if (found.encoding !== 'UTF8') {
    throw new Error(`the database has the encoding ${found.encoding}, UTF8 is needed`);
  }
  if (found.standby === 1) throw new ConnectionLost('the server is a standby, it takes no writes');
}

function sessionSql(timeouts: PostgresTimeouts): string {
  const settings: Readonly<Record<string, string>> = {
    client_encoding: 'UTF8',
    lock_timeout: `${timeouts.lock}`,
    idle_in_transaction_session_timeout: `${timeouts.idleInTransaction}`,
    statement_timeout: `${timeouts.statement}`,
    // A machine that is gone says nothing; its locks must be free in less than a minute.
    tcp_keepalives_idle: '10',
    tcp_keepalives_interval: '5',
    tcp_keepalives_count: '3',
    // Nothing is written outside a transaction that says so: statements leave before the answer
    // to BEGIN is there, and must do nothing where it fails.
    default_transaction_read_only: 'on',
    // Every statement of the stores is about a few rows that an index finds. The planner would
    // read whole tables that were empty when somebody counted them, and keep such a plan while
    // they grow; so it may not, and makes one plan for each connection, whatever the values are.
    enable_seqscan: 'off',
    enable_hashjoin: 'off',
    enable_mergejoin: 'off',
    // Of what is due it would find all first, and sort it, to take the first few.
    enable_bitmapscan: 'off',
    plan_cache_mode: 'force_generic_plan',
    // Compiling pays for none of the stores' small statements.
    jit: 'off',
  };
  const set = Object.entries(settings).map(
    ([name, value]) => `set_config('${name}', '${value}', false)`,
  );
  return `SELECT ${set.join(', ')},
    -- Success means that it is on the disk, whatever else the server is set up for.
    set_config('synchronous_commit',
      replace(current_setting('synchronous_commit'), 'off', 'on'), false),
    current_setting('server_version_num')::int AS version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS standby`;
}
