/**
 * SQL of the requests of `posthouse doctor`, which is a process of its own, to the running relay:
 * only it has connections with other relays. A process that can write here is the operator's.
 */
import type { Reader, Row, Storage, Writer } from '../../storage/types.ts';
import { knownRelays } from '../store.ts';

/** Requests that may be stored at once; a command deletes its own. */
const maxRequests = 4;

/** Seconds after which a request is of a command that was killed. */
const lifetime = 300;

/**
 * Stores a request for a running process of this relay.
 *
 * @param now Unix seconds, of the command's clock
 * @throws Error if other commands wait already
 */
export async function putRequest(
  storage: Storage,
  { id, now }: { readonly id: string; readonly now: number },
): Promise<void> {
  await storage.write(knownRelays, async (tx) => {
    await tx.run(
      'DELETE FROM reachability_requests WHERE asked_at < ? OR asked_at > ?',
      now - lifetime,
      now + lifetime,
    );
    const row = await tx.get<Row & { requests: number }>(
      'SELECT COUNT(*) AS requests FROM reachability_requests',
    );
    if (Number(row?.requests) >= maxRequests) {
      throw new Error('other commands wait for this: try again in five minutes');
    }
    await tx.run(
      'INSERT INTO reachability_requests (id, asked_at, is_taken) VALUES (?, ?, 0)',
      id,
      now,
    );
  });
}

/** How far a request is; the report is JSON. */
export interface RequestState {
  readonly isTaken: boolean;
  readonly report: string | undefined;
}

/** Reads the state of a request; `undefined` if it was deleted. */
export async function readRequest(tx: Reader, id: string): Promise<RequestState | undefined> {
  const row = await tx.get<Row & { is_taken: number; report: string | null }>(
    'SELECT is_taken, report FROM reachability_requests WHERE id = ?',
    id,
  );
  return row && { isTaken: row.is_taken === 1, report: row.report ?? undefined };
}

export async function deleteRequest(tx: Writer, id: string): Promise<void> {
  await tx.run('DELETE FROM reachability_requests WHERE id = ?', id);
}

/** Finds a request that no process has taken. */
export async function findRequest(tx: Reader): Promise<string | undefined> {
  const row = await tx.get<Row & { id: string }>(
    'SELECT id FROM reachability_requests WHERE is_taken = 0 ORDER BY id LIMIT 1',
  );
  return row?.id;
}

/** Takes a request for this process; returns false if another one was faster. */
export async function takeRequest(tx: Writer, id: string): Promise<boolean> {
  const changed = await tx.run(
    'UPDATE reachability_requests SET is_taken = 1 WHERE id = ? AND is_taken = 0',
    id,
  );
  return changed > 0;
}

export async function putReport(tx: Writer, id: string, report: string): Promise<void> {
  await tx.run('UPDATE reachability_requests SET report = ? WHERE id = ?', report, id);
}
