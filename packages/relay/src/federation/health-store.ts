/** All SQL about which relays can be reached. */
import { forEach } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** Why and since when a relay fails. Times are Unix seconds. */
export interface Failing {
  readonly since: number;
  /** Failures in a row. */
  readonly failures: number;
  /** No request is sent before. */
  readonly retryAt: number;
  /** In words, for the operator. */
  readonly error: string;
}

/** What is stored of a relay; without `failing`, it was reached at `lastOk`. */
export interface StoredHealth {
  readonly relayId: string;
  readonly failing: Failing | undefined;
  readonly lastOk: number | undefined;
}

/** Stores the health of relays that the registry lists; of others there is no row. */
export async function storeHealth(tx: Writer, batch: readonly StoredHealth[]): Promise<void> {
  await forEach(batch, ({ relayId, failing, lastOk }) =>
    tx.run(
      `UPDATE relays SET last_ok = COALESCE(?, last_ok), failing_since = ?, failures = ?,
          retry_at = ?, last_error = COALESCE(?, last_error),
          ok_since = CASE WHEN ? = 1 THEN NULL ELSE COALESCE(ok_since, ?) END
        WHERE relay_id = ?`,
      lastOk ?? null,
      failing?.since ?? null,
      failing?.failures ?? 0,
      failing?.retryAt ?? null,
      failing?.error ?? null,
      // The first success after a failure stays.
      failing === undefined ? 0 : 1,
      lastOk ?? null,
      relayId,
    ),
  );
}

interface FailingRow extends Row {
  relay_id: string;
  failing_since: number;
  failures: number;
  retry_at: number | null;
  last_error: string | null;
}

/** Reads all relays that fail, by ID. */
export async function readFailing(tx: Reader): Promise<ReadonlyMap<string, Failing>> {
  const rows = await tx.all<FailingRow>(
    `SELECT relay_id, failing_since, failures, retry_at, last_error FROM relays
      WHERE failing_since IS NOT NULL`,
  );
  return new Map(
    rows.map((row) => [
      row.relay_id,
      {
        since: row.failing_since,
        failures: row.failures,
        retryAt: row.retry_at ?? 0,
        error: row.last_error ?? '',
      },
    ]),
  );
}

/**
 * Lets a failing relay be tried again at once; a running relay reads that by itself.
 *
 * @param now Unix seconds
 * @returns whether it was failing
 */
export async function endPause(tx: Writer, relayId: string, now: number): Promise<boolean> {
  const changed = await tx.run(
    'UPDATE relays SET retry_at = ? WHERE relay_id = ? AND failing_since IS NOT NULL',
    now,
    relayId,
  );
  return changed > 0;
}
