/** All SQL of what this relay does for the routes that name it (07 §B12). */
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { Announcement } from './store.ts';

/** A route that names this relay, as the job that confirms it reads it. */
export interface OwnRoute {
  readonly account: string;
  /** When the network was last asked for a higher route, Unix seconds. */
  readonly checkedAt: number;
}

/** Reads routes that name this relay and were last confirmed by an instant, after a given one. */
export async function readRoutesToCheck(
  tx: Reader,
  {
    relayId,
    by,
    after,
    limit,
  }: {
    readonly relayId: string;
    readonly by: number;
    readonly after: OwnRoute | undefined;
    readonly limit: number;
  },
): Promise<OwnRoute[]> {
  return await tx.all<OwnRoute & Row>(
    `SELECT account, checked_at AS "checkedAt" FROM account_routes
      WHERE relay_id = ? AND checked_at <= ? AND (checked_at, account) > (?, ?)
      ORDER BY checked_at, account LIMIT ?`,
    relayId,
    by,
    after?.checkedAt ?? Number.MIN_SAFE_INTEGER,
    after?.account ?? '',
    limit,
  );
}

/** Records when a route was confirmed, unless another one came meanwhile. */
export async function markChecked(
  tx: Writer,
  { account, checkedAt }: OwnRoute,
  now: number,
): Promise<void> {
  await tx.run(
    'UPDATE account_routes SET checked_at = ? WHERE account = ? AND checked_at = ?',
    now,
    account,
    checkedAt,
  );
}

/** Puts an account's route into use again, which a restore of the database had put in doubt. */
export async function confirmRoute(tx: Writer, account: string): Promise<void> {
  await tx.run(
    'UPDATE account_routes SET held_until = -held_until WHERE account = ? AND held_until < 0',
    account,
  );
}

/** Returns when the route that was confirmed longest ago was, Unix seconds. */
export async function earliestCheck(tx: Reader, relayId: string): Promise<number | undefined> {
  const row = await tx.get<{ checked_at: number }>(
    `SELECT checked_at FROM account_routes WHERE relay_id = ?
      ORDER BY relay_id, checked_at LIMIT 1`,
    relayId,
  );
  return row?.checked_at;
}

/** A route that the relay which the account left has not stored yet. */
export interface PendingRoute {
  readonly account: string;
  readonly revision: number;
  readonly previousRelay: string;
  /** Times it was not reached. */
  readonly failures: number;
  readonly announceAt: number;
  /** Canonical JSON. */
  readonly text: string;
}

const pendingColumns = `account, revision, previous_relay AS "previousRelay",
  announce_failures AS failures, announce_at AS "announceAt", route AS text`;

/** Reads which relay still has to be sent the account's route. */
export async function readPreviousRelay(tx: Reader, account: string): Promise<string | undefined> {
  const row = await tx.get<{ previous_relay: string | null }>(
    'SELECT previous_relay FROM account_routes WHERE account = ?',
    account,
  );
  return row?.previous_relay ?? undefined;
}

/** Reads routes that are due to be sent, after a given one, in a fixed order. */
export async function readPendingRoutes(
  tx: Reader,
  {
    now,
    after,
    limit,
  }: {
    readonly now: number;
    readonly after: PendingRoute | undefined;
    readonly limit: number;
  },
): Promise<PendingRoute[]> {
  return await tx.all<PendingRoute & Row>(
    `SELECT ${pendingColumns} FROM account_routes
      WHERE announce_at <= ? AND (announce_at, account) > (?, ?)
      ORDER BY announce_at, account LIMIT ?`,
    now,
    after?.announceAt ?? Number.MIN_SAFE_INTEGER,
    after?.account ?? '',
    limit,
  );
}

/** Records that the relay stored the route, or will not be sent it any more. */
export async function endAnnouncement(
  tx: Writer,
  { account, revision }: Pick<PendingRoute, 'account' | 'revision'>,
): Promise<void> {
  await tx.run(
    `UPDATE account_routes SET previous_relay = NULL, announce_at = NULL
      WHERE account = ? AND revision = ?`,
    account,
    revision,
  );
}

/** Records that the relay was not reached, and when it is sent the route again. */
export async function postponeAnnouncement(
  tx: Writer,
  { account, revision, failures }: PendingRoute,
  announceAt: number,
): Promise<void> {
  await tx.run(
    `UPDATE account_routes SET announce_failures = ?, announce_at = ?
      WHERE account = ? AND revision = ? AND announce_at IS NOT NULL`,
    failures + 1,
    announceAt,
    account,
    revision,
  );
}

/** Records that a relay must be sent the account's route, unless another one must be. */
export async function addAnnouncement(
  tx: Writer,
  { account, revision }: Pick<PendingRoute, 'account' | 'revision'>,
  { relayId, at }: Announcement,
): Promise<void> {
  await tx.run(
    `UPDATE account_routes SET previous_relay = ?, announce_at = ?, announce_failures = 0
      WHERE account = ? AND revision = ? AND announce_at IS NULL`,
    relayId,
    at,
    account,
    revision,
  );
}

/** Makes waiting routes of accounts that left a relay due at once; returns how many. */
export async function wakeAnnouncements(
  tx: Writer,
  previousRelay: string,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<number> {
  return await tx.run(
    `UPDATE account_routes SET announce_at = ? WHERE account IN
      (SELECT account FROM account_routes
        WHERE announce_at > ? AND previous_relay = ? LIMIT ?)`,
    now,
    now,
    previousRelay,
    limit,
  );
}

/** Returns when the next route is due to be sent, Unix seconds. */
export async function nextAnnouncement(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ announce_at: number }>(
    `SELECT announce_at FROM account_routes WHERE announce_at IS NOT NULL
      ORDER BY announce_at LIMIT 1`,
  );
  return row?.announce_at;
}
