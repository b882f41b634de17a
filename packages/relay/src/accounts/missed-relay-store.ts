/** All SQL of relays that gave no answer when the network was asked for accounts at home here. */
import { forEach } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { OwnRoute } from './own-route-store.ts';

/** A relay that has to be asked again. Times are Unix seconds. */
export interface MissedRelay {
  readonly relayId: string;
  /** It is asked for the routes after this one, in the order in which routes are confirmed. */
  readonly after: OwnRoute;
  /** When it last gave no answer. */
  readonly missedAt: number;
  /** Grows with each miss: a change during a run begins the questions again. */
  readonly misses: number;
  /** Times in a row that it gave no answer when it was asked again. */
  readonly failures: number;
  readonly retryAt: number;
}

/**
 * Records that relays gave no answer for routes that are confirmed otherwise.
 *
 * @param now no later than the time that the routes are confirmed with
 */
export async function addMissedRelays(
  tx: Writer,
  relays: Iterable<string>,
  { now, retryAt }: { readonly now: number; readonly retryAt: number },
): Promise<void> {
  await forEach([...relays], (relayId) =>
    tx.run(
      `INSERT INTO missed_relays
          (relay_id, since, after_account, missed_at, misses, failures, retry_at)
        VALUES (?, ?, '', ?, 1, 0, ?)
        ON CONFLICT (relay_id) DO UPDATE SET misses = missed_relays.misses + 1,
          missed_at = excluded.missed_at,
          since = CASE WHEN missed_relays.since < excluded.since
            THEN missed_relays.since ELSE excluded.since END,
          after_account = CASE WHEN missed_relays.since < excluded.since
            THEN missed_relays.after_account ELSE '' END`,
      relayId,
      now,
      now,
      retryAt,
    ),
  );
}

interface MissedRow extends Row {
  relay_id: string;
  since: number;
  after_account: string;
  missed_at: number;
  misses: number;
  failures: number;
  retry_at: number;
}

/** Reads relays that are due to be asked again. */
export async function readDueRelays(
  tx: Reader,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<MissedRelay[]> {
  const rows = await tx.all<MissedRow>(
    `SELECT relay_id, since, after_account, missed_at, misses, failures, retry_at
      FROM missed_relays WHERE retry_at <= ? ORDER BY retry_at, relay_id LIMIT ?`,
    now,
    limit,
  );
  return rows.map((row) => ({
    relayId: row.relay_id,
    after: { checkedAt: row.since, account: row.after_account },
    missedAt: row.missed_at,
    misses: row.misses,
    failures: row.failures,
    retryAt: row.retry_at,
  }));
}

/** Records that a relay gave no answer again, after which route, and when it is asked again. */
export async function postponeRelay(
  tx: Writer,
  { relayId, misses, failures }: MissedRelay,
  { after, retryAt }: { readonly after: OwnRoute; readonly retryAt: number },
): Promise<void> {
  await tx.run(
    'UPDATE missed_relays SET failures = ?, retry_at = ? WHERE relay_id = ?',
    failures + 1,
    retryAt,
    relayId,
  );
  await tx.run(
    'UPDATE missed_relays SET since = ?, after_account = ? WHERE relay_id = ? AND misses = ?',
    after.checkedAt,
    after.account,
    relayId,
    misses,
  );
}

/** Records that a relay answered for every route, unless it was missed again meanwhile. */
export async function deleteMissedRelay(
  tx: Writer,
  { relayId, misses }: MissedRelay,
): Promise<void> {
  await tx.run('DELETE FROM missed_relays WHERE relay_id = ? AND misses = ?', relayId, misses);
}

/** Makes a relay due at once. */
export async function wakeMissedRelay(tx: Writer, relayId: string, now: number): Promise<void> {
  await tx.run(
    'UPDATE missed_relays SET retry_at = ? WHERE relay_id = ? AND retry_at > ?',
    now,
    relayId,
    now,
  );
}

/** Returns when the next relay is due to be asked again, Unix seconds. */
export async function nextMissedRelay(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ retry_at: number }>(
    'SELECT retry_at FROM missed_relays ORDER BY retry_at LIMIT 1',
  );
  return row?.retry_at;
}
