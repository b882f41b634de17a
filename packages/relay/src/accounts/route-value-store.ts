/** SQL of routes as values of the relay DHT: their local end, and when they are sent (07 §B12). */
import type { FinalRoute } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** For how long a route of an account at home elsewhere is held. Times are Unix seconds. */
export interface Hold {
  readonly until: number;
  /** When it is sent to other relays, unless it comes again before; unchanged without this. */
  readonly publishAt: number | undefined;
}

/** Prolongs the life of the stored route, never past its expiry, and stores its text again. */
export async function holdRoute(
  tx: Writer,
  route: FinalRoute,
  { until, publishAt }: Hold,
): Promise<void> {
  const end = Math.min(until, route.expires_at);
  // What a relay sent sets the end, which may be one of a clock that was ahead; a lookup keeps it.
  const keepsLater = publishAt === undefined ? 1 : 0;
  await tx.run(
    `UPDATE account_routes SET publish_at = COALESCE(?, publish_at), publish_failures = 0,
        route = CASE WHEN route = '' THEN ? ELSE route END,
        held_until = CASE WHEN ? = 1 AND held_until > ? AND held_until < expires_at
          THEN held_until ELSE ? END
      WHERE account = ? AND revision = ?`,
    publishAt ?? null,
    canonicalJson(route),
    keepsLater,
    end,
    end,
    route.account,
    route.revision,
  );
}

/**
 * Deletes routes of accounts at home elsewhere whose local life has ended; their revisions stay.
 *
 * @returns how many
 */
export async function deleteEndedValues(
  tx: Writer,
  {
    relayId,
    now,
    limit,
  }: { readonly relayId: string; readonly now: number; readonly limit: number },
): Promise<number> {
  return await tx.run(
    `UPDATE account_routes SET route = '', held_until = 0, publish_at = NULL WHERE account IN
      (SELECT account FROM account_routes
        WHERE held_until > 0 AND held_until <= ? AND relay_id <> ?
        ORDER BY held_until, account LIMIT ?)`,
    now,
    relayId,
    limit,
  );
}

/** Returns when the next such route ends, Unix seconds. */
export async function nextValueEnd(tx: Reader, relayId: string): Promise<number | undefined> {
  const row = await tx.get<{ held_until: number }>(
    `SELECT held_until FROM account_routes WHERE held_until > 0 AND relay_id <> ?
      ORDER BY held_until, account LIMIT 1`,
    relayId,
  );
  return row?.held_until;
}

/** A route that is due to be sent. */
export interface DueRoute {
  readonly account: string;
  readonly relayId: string;
  readonly revision: number;
  readonly publishAt: number;
  /** When the network was last asked for a higher route. */
  readonly checkedAt: number;
  /** Times in a row that too few relays stored it. */
  readonly failures: number;
}

/** Which routes are due. */
export interface DuePage {
  readonly relayId: string;
  /** Those that name this relay, or all others. */
  readonly isOwn: boolean;
  readonly now: number;
  /** No time lies further ahead, unless the clock was set back since. */
  readonly latest: number;
  readonly limit: number;
}

/**
 * Reads routes that are due to be sent, the longest due first, then those whose time is of a clock
 * that was ahead.
 */
export async function readRoutesToPublish(tx: Reader, page: DuePage): Promise<DueRoute[]> {
  const { relayId, isOwn, now, latest, limit } = page;
  const own = isOwn ? 1 : 0;
  // Not an equality of relays, for which the index of all own routes would be read.
  const due = await tx.all<DueRoute & Row>(
    `SELECT account, relay_id AS "relayId", revision, publish_at AS "publishAt",
        publish_failures AS failures, checked_at AS "checkedAt"
      FROM account_routes
      WHERE publish_at <= ? AND CASE WHEN relay_id = ? THEN 1 ELSE 0 END = ?
      ORDER BY publish_at, account LIMIT ?`,
    now,
    relayId,
    own,
    limit,
  );
  if (due.length === limit) return due;
  const misdated = await tx.all<DueRoute & Row>(
    `SELECT account, relay_id AS "relayId", revision, publish_at AS "publishAt",
        publish_failures AS failures, checked_at AS "checkedAt"
      FROM account_routes
      WHERE publish_at > ? AND CASE WHEN relay_id = ? THEN 1 ELSE 0 END = ?
      ORDER BY publish_at, account LIMIT ?`,
    latest,
    relayId,
    own,
    limit - due.length,
  );
  return [...due, ...misdated];
}

/** Takes a due route, for a while, unless another process took it; returns whether it did. */
export async function claimPublication(
  tx: Writer,
  { account, publishAt }: DueRoute,
  until: number,
): Promise<boolean> {
  const claimed = await tx.run(
    'UPDATE account_routes SET publish_at = ? WHERE account = ? AND publish_at = ?',
    until,
    account,
    publishAt,
  );
  return claimed > 0;
}

/**
 * Records when a route of this revision is sent again; never without `publishAt`.
 *
 * @param next.failures times in a row that too few relays stored it
 */
export async function markPublished(
  tx: Writer,
  { account, revision }: Pick<DueRoute, 'account' | 'revision'>,
  next: { readonly publishAt: number | undefined; readonly failures?: number },
): Promise<void> {
  await tx.run(
    `UPDATE account_routes SET publish_at = ?, publish_failures = ?
      WHERE account = ? AND revision = ? AND conflict = 0`,
    next.publishAt ?? null,
    next.failures ?? 0,
    account,
    revision,
  );
}

/** Returns when the next route is due to be sent, Unix seconds. */
export async function nextPublication(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ publish_at: number }>(
    `SELECT publish_at FROM account_routes WHERE publish_at IS NOT NULL
      ORDER BY publish_at LIMIT 1`,
  );
  return row?.publish_at;
}
