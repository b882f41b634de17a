/** SQL of sessions; `auth/` has the migration and deletes expired rows. Tokens are stored as SHA-256 only. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Writer } from '../storage/types.ts';
import type { Session } from './session.ts';
import { logSessionEnd } from './session-ends-store.ts';

/** @param openedAt Unix seconds */
export async function insertSession(
  tx: Writer,
  { session, origin }: StoredSession,
  openedAt: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO auth_sessions
      (token_hash, account, mode, device_id, origin, expires_at, opened_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
    session.id,
    session.account,
    session.mode,
    session.mode === 'device' ? session.deviceId : null,
    origin,
    session.expiresAt,
    openedAt,
  );
}

/** Returns whether a device has a session. @param now Unix seconds */
export async function hasDeviceSession(
  tx: Reader,
  { account, deviceId }: { readonly account: string; readonly deviceId: string },
  now: number,
): Promise<boolean> {
  const row = await tx.get(
    'SELECT account FROM auth_sessions WHERE account = ? AND device_id = ? AND expires_at > ? LIMIT 1',
    account,
    deviceId,
    now,
  );
  return row !== undefined;
}

/** Sessions of one account: of a device, those with the account key, or all of them. */
export type SessionSet =
  | { readonly kind: 'device'; readonly account: string; readonly deviceId: string }
  | { readonly kind: 'account' | 'all'; readonly account: string };

/** The condition, and its values, that chooses the sessions of a set. */
function chosen(set: SessionSet): { readonly where: string; readonly values: readonly string[] } {
  switch (set.kind) {
    case 'device':
      return { where: 'account = ? AND device_id = ?', values: [set.account, set.deviceId] };
    case 'account':
      return { where: 'account = ? AND device_id IS NULL', values: [set.account] };
    case 'all':
      return { where: 'account = ?', values: [set.account] };
  }
}

/** Whether one more session may be opened, and for which sets the oldest must end. */
export interface SessionRoom {
  /** When the `openedRecently`-th newest session was opened; `undefined` if fewer were. Unix seconds. */
  readonly openedAt: number | undefined;
  /** Whether the set has `ofSet` sessions, and its account `ofAccount`. */
  readonly isSetFull: boolean;
  readonly isAccountFull: boolean;
}

/**
 * Reads, in one statement, what limits a session that is opened `now`. Sessions opened up to `since`
 * are not recent, nor are those opened after `now`, before the clock was set back.
 *
 * @param limits numbers of sessions, each at least 1
 */
export async function readSessionRoom(
  tx: Reader,
  set: SessionSet,
  {
    since,
    now,
    limits,
  }: {
    readonly since: number;
    readonly now: number;
    readonly limits: {
      readonly openedRecently: number;
      readonly ofSet: number;
      readonly ofAccount: number;
    };
  },
): Promise<SessionRoom> {
  const { where, values } = chosen(set);
  const row = await tx.get<{
    opened_at: number | null;
    of_set: number | null;
    of_account: number | null;
  }>(
    `SELECT
        (SELECT opened_at FROM auth_sessions WHERE ${where} AND opened_at > ? AND opened_at <= ?
          ORDER BY opened_at DESC LIMIT 1 OFFSET ?) AS opened_at,
        (SELECT opened_at FROM auth_sessions WHERE ${where} LIMIT 1 OFFSET ?) AS of_set,
        (SELECT opened_at FROM auth_sessions WHERE account = ? LIMIT 1 OFFSET ?) AS of_account`,
    ...values,
    since,
    now,
    limits.openedRecently - 1,
    ...values,
    limits.ofSet - 1,
    set.account,
    limits.ofAccount - 1,
  );
  return {
    openedAt: row?.opened_at ?? undefined,
    isSetFull: typeof row?.of_set === 'number',
    isAccountFull: typeof row?.of_account === 'number',
  };
}

/** Sessions that end in one transaction, if a limit was lowered. */
const endedAtOnce = 1_000;

/**
 * Ends the oldest sessions of a set. The caller publishes an `ended` notice afterwards.
 *
 * @param left.count how many sessions stay, in addition to `left.except`
 * @param left.except ID of a session that does not end
 * @returns the IDs of the sessions that ended
 */
export async function endOldestSessions(
  tx: Writer,
  set: SessionSet,
  left: { readonly count: number; readonly except: string | undefined },
): Promise<string[]> {
  const { where, values } = chosen(set);
  const rows = await tx.all<{ token_hash: string }>(
    `DELETE FROM auth_sessions WHERE token_hash IN
      (SELECT token_hash FROM auth_sessions WHERE ${where} AND token_hash <> ?
        ORDER BY opened_at DESC, token_hash LIMIT ? OFFSET ?) RETURNING token_hash`,
    ...values,
    left.except ?? '',
    endedAtOnce,
    left.count,
  );
  if (rows.length > 0) await logSessionEnd(tx, set.account);
  return rows.map(({ token_hash: id }) => id);
}

/** Ends all sessions of an account. The caller publishes an `ended` notice, or blocks the account. */
export async function endSessionsOf(tx: Writer, account: string): Promise<void> {
  const left = { count: 0, except: undefined };
  for (let ended = endedAtOnce; ended === endedAtOnce; ) {
    ended = (await endOldestSessions(tx, { kind: 'all', account }, left)).length;
  }
}

export interface StoredSession {
  readonly session: Session;
  /** The one origin the token is good for (02 §2.6). */
  readonly origin: string;
}

interface SessionRow extends Record<string, string | number | null> {
  account: string;
  mode: 'device' | 'account';
  device_id: string | null;
  origin: string;
  expires_at: number;
  home_relay: string | null;
}

/**
 * Reads a session.
 * @param id the hash of its token
 */
export async function readSession(tx: Reader, id: string): Promise<StoredSession | undefined> {
  const row = await tx.get<SessionRow>(
    `SELECT account, mode, device_id, origin, expires_at,
        (SELECT d.relay_id FROM remote_devices d WHERE d.account = auth_sessions.account
          AND d.device_id = auth_sessions.device_id) AS home_relay
      FROM auth_sessions WHERE token_hash = ?`,
    id,
  );
  if (row === undefined) return undefined;
  const { account, origin, device_id: deviceId, expires_at: expiresAt, home_relay } = row;
  if (deviceId === null) return { session: { id, mode: 'account', account, expiresAt }, origin };
  const home = home_relay === null ? {} : { homeRelay: home_relay };
  return { session: { id, mode: 'device', account, deviceId, expiresAt, ...home }, origin };
}

/** Reads when sessions end, by ID; a session that is not stored has ended. */
export async function readEnds(
  tx: Reader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ends = new Map<string, number>();
  for (const chunk of chunks(ids)) {
    const rows = await tx.all<{ token_hash: string; expires_at: number }>(
      `SELECT token_hash, expires_at FROM auth_sessions WHERE token_hash IN (${placeholders(chunk)})`,
      ...chunk,
    );
    for (const row of rows) ends.set(row.token_hash, row.expires_at);
  }
  return ends;
}

/**
 * Ends every session of these devices, in the transaction that removes the devices. The caller
 * publishes a `revoked` notice afterwards (02 §10.3).
 */
export async function revokeSessions(
  tx: Writer,
  account: string,
  deviceIds: readonly string[],
): Promise<void> {
  let ended = 0;
  for (const deviceId of deviceIds) {
    ended += await tx.run(
      'DELETE FROM auth_sessions WHERE account = ? AND device_id = ?',
      account,
      deviceId,
    );
  }
  if (ended > 0) await logSessionEnd(tx, account);
}

/**
 * Shortens every session of a device to `expiresAt`, in the transaction that stores a certificate
 * with an earlier end: no session outlives its device's latest certificate. The caller publishes a
 * `capped` notice afterwards (02 §10.2, §10.3).
 */
export async function capSessions(
  tx: Writer,
  { account, deviceId }: { readonly account: string; readonly deviceId: string },
  expiresAt: number,
): Promise<void> {
  const shortened = await tx.run(
    `UPDATE auth_sessions SET expires_at = ?
      WHERE account = ? AND device_id = ? AND expires_at > ?`,
    expiresAt,
    account,
    deviceId,
    expiresAt,
  );
  if (shortened > 0) await logSessionEnd(tx, account);
}
