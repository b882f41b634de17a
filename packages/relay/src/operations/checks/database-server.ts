import type { Row } from '../../storage/types.ts';
import { type Check, type Finding, failed, ok, skipped, warning } from './check.ts';

/** Settings of a PostgreSQL server and of this session; absent in versions that lack one. */
export interface ServerSettings extends Row {
  readonly version: string;
  readonly encoding: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly free_connections: number;
  readonly idle_session_timeout: string | null;
  readonly transaction_timeout: string | null;
}

const settingsSql = `SELECT
  current_setting('server_version') AS version,
  current_setting('server_encoding') AS encoding,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('max_connections')::int
    - current_setting('superuser_reserved_connections')::int AS free_connections,
  current_setting('idle_session_timeout', true) AS idle_session_timeout,
  current_setting('transaction_timeout', true) AS transaction_timeout`;

/** Connections of a process in addition to `storage.connections`: for appends, and for its lock. */
const ownConnections = 2;

/** Whether the PostgreSQL server loses nothing, has room, and ends no connection of the relay. */
export const databaseServer: Check = {
  name: 'database server',
  scope: 'local',
  needs: ['database'],
  cure: 'try again',
  async find(relay) {
    const { dev, storage: settings } = relay.config;
    const { engine, connections } = settings;
    if (engine !== 'postgres') return skipped('storage.engine is sqlite: there is no server');
    const storage = await relay.storage;
    const found = await storage.read((tx) => tx.get<ServerSettings>(settingsSql));
    return serverFinding(found as ServerSettings, {
      needed: connections + ownConnections,
      isDurable: !dev,
    });
  },
};

/**
 * Judges the settings.
 *
 * @param relay.needed connections of one process
 * @param relay.isDurable whether the data must survive a crash of the machine
 */
export function serverFinding(
  found: ServerSettings,
  { needed, isDurable }: { readonly needed: number; readonly isDurable: boolean },
): Finding {
  const seen = `PostgreSQL ${found.version}, ${found.encoding}`;
  for (const name of ['fsync', 'full_page_writes'] as const) {
    if (found[name] === 'on' || !isDurable) continue;
    return failed(
      `${seen}: ${name} is ${found[name]}, so a crash of the machine can destroy the database`,
      `set \`${name} = on\` in postgresql.conf, and restart the server`,
    );
  }
  if (found.free_connections < needed) {
    return failed(
      `${seen}: it takes ${found.free_connections} connections, and a process of the relay uses up to ${needed}`,
      'raise `max_connections` in postgresql.conf, or lower storage.connections',
    );
  }
  for (const name of ['idle_session_timeout', 'transaction_timeout'] as const) {
    if (found[name] === null || found[name] === '0') continue;
    return warning(
      `${seen}: ${name} is ${found[name]}, by which the server ends connections of the relay`,
      `run \`ALTER ROLE <the relay's> SET ${name} = 0\``,
    );
  }
  return ok(`${seen}, up to ${needed} of ${found.free_connections} connections for each process`);
}
