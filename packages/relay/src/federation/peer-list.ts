/** What is stored of other relays, for the operator's command `posthouse peers`. */
import type { RelayEntry } from '@posthouse/protocol';
import { readBoundRelay } from '../storage/identity.ts';
import type { Reader, Row, Storage } from '../storage/types.ts';
import { isBlocked } from './block-store.ts';
import { endPause } from './health-store.ts';
import { knownRelays } from './store.ts';

/** Another relay. Times are Unix seconds. */
export interface KnownRelay {
  readonly relayId: string;
  readonly endpoint: string;
  /** As the registry has it. */
  readonly status: RelayEntry['status'];
  /** When the registry's record last changed. */
  readonly updatedAt: number;
  /** Base58; absent until its descriptor was seen. */
  readonly peerId: string | undefined;
  /** Canonical JSON. */
  readonly descriptor: string | undefined;
  /** When it last answered; stored at intervals. */
  readonly lastOk: number | undefined;
  /** When it first answered after its last failure. */
  readonly okSince: number | undefined;
  /** Present while it does not answer. */
  readonly failing: { readonly since: number; readonly retryAt: number } | undefined;
  /** The last failure in words, also of a relay that answers again. */
  readonly lastError: string | undefined;
}

interface KnownRow extends Row {
  relay_id: string;
  endpoint: string;
  status: string;
  updated_at: number;
  peer_id: string | null;
  descriptor: string | null;
  last_ok: number | null;
  ok_since: number | null;
  failing_since: number | null;
  retry_at: number | null;
  last_error: string | null;
}

/** Reads the relays that this one knows from an ID on, without itself; at most `limit`. */
export async function readKnownRelays(
  tx: Reader,
  { from, limit }: { readonly from: string; readonly limit: number },
): Promise<KnownRelay[]> {
  const rows = await tx.all<KnownRow>(
    `SELECT relay_id, endpoint, status, updated_at, peer_id, descriptor, last_ok, ok_since,
        failing_since, retry_at, last_error
      FROM relays WHERE relay_id >= ? AND relay_id <> ? ORDER BY relay_id LIMIT ?`,
    from,
    (await readBoundRelay(tx)) ?? '',
    limit,
  );
  return rows.map((row) => ({
    relayId: row.relay_id,
    endpoint: row.endpoint,
    status: row.status as RelayEntry['status'],
    updatedAt: Math.floor(row.updated_at / 1_000),
    peerId: row.peer_id ?? undefined,
    descriptor: row.descriptor ?? undefined,
    lastOk: row.last_ok ?? undefined,
    okSince: row.ok_since ?? undefined,
    failing:
      row.failing_since === null
        ? undefined
        : { since: row.failing_since, retryAt: row.retry_at ?? row.failing_since },
    lastError: row.last_error ?? undefined,
  }));
}

/** What {@link retryRelay} found. */
export type RetryResult = 'retried' | 'not_failing' | 'blocked' | 'not_known';

/**
 * Lets a failing relay be tried again at once instead of at the end of its pause. A running relay
 * reads that by itself.
 *
 * @param now Unix seconds
 */
export async function retryRelay(
  storage: Storage,
  relayId: string,
  now: number,
): Promise<RetryResult> {
  return await storage.write(knownRelays, async (tx) => {
    if (await isBlocked(tx, relayId, now)) return 'blocked';
    if (await endPause(tx, relayId, now)) return 'retried';
    const row = await tx.get('SELECT relay_id FROM relays WHERE relay_id = ?', relayId);
    return row === undefined ? 'not_known' : 'not_failing';
  });
}
