/** All SQL about connections with other relays, for the operator's command `posthouse peers`. */
import { forEach } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** Seconds after which the rows of a process that does not renew them are of no interest. */
const connectionLifetime = 180;

/** The row with which one of several processes tells that it runs, connected or not. */
const ownRow = '';

/** The connections of one process. Times are Unix seconds. */
export interface ProcessConnections {
  /** Identifies the process since its start. */
  readonly process: string;
  readonly now: number;
  /** When it connected with each relay. */
  readonly since: ReadonlyMap<string, number>;
}

/**
 * Stores the connections of a process in place of its earlier ones, and deletes those of processes
 * that ended.
 *
 * @param options.isAlone whether this relay has no other process
 */
export async function storeConnections(
  tx: Writer,
  { process, now, since }: ProcessConnections,
  { isAlone }: { readonly isAlone: boolean },
): Promise<void> {
  if (isAlone) await tx.run('DELETE FROM peer_connections');
  else {
    await tx.run(
      'DELETE FROM peer_connections WHERE process = ? OR seen_at < ?',
      process,
      now - connectionLifetime,
    );
  }
  const own = isAlone ? [] : [[ownRow, now] as const];
  await forEach([...own, ...since], ([relayId, connectedAt]) =>
    tx.run(
      'INSERT INTO peer_connections (process, relay_id, since, seen_at) VALUES (?, ?, ?, ?)',
      process,
      relayId,
      connectedAt,
      now,
    ),
  );
}

/** Tells whether connections of any process are stored. */
export async function hasConnections(tx: Reader): Promise<boolean> {
  return (await tx.get('SELECT process FROM peer_connections LIMIT 1')) !== undefined;
}

/** Deletes the rows of a process that stops. */
export async function deleteConnections(tx: Writer, process: string): Promise<void> {
  await tx.run('DELETE FROM peer_connections WHERE process = ?', process);
}

/** The connections of all processes with one relay. */
export interface PeerConnection {
  /** Unix seconds. */
  readonly since: number;
  readonly processes: number;
}

/** Which relays the running processes are connected with. */
export interface ConnectionList {
  /** Number of running processes; 0 for a relay of one process. */
  readonly processes: number;
  readonly byRelay: ReadonlyMap<string, PeerConnection>;
}

/** Reads the connections of the processes that run at `now`, Unix seconds. */
export async function readConnections(tx: Reader, now: number): Promise<ConnectionList> {
  const rows = await tx.all<Row & { relayId: string; since: number; processes: number }>(
    `SELECT relay_id AS "relayId", MIN(since) AS since, COUNT(*) AS processes
      FROM peer_connections WHERE seen_at >= ? GROUP BY relay_id`,
    now - connectionLifetime,
  );
  const byRelay = new Map(rows.map(({ relayId, ...row }) => [relayId, toConnection(row)]));
  const processes = byRelay.get(ownRow)?.processes ?? 0;
  byRelay.delete(ownRow);
  return { processes, byRelay };
}

function toConnection({ since, processes }: { since: number; processes: number }): PeerConnection {
  return { since: Number(since), processes: Number(processes) };
}
