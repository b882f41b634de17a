/** SQL of sessions; `auth/` has the migration and deletes expired rows. Tokens are stored as SHA-256 only. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Writer } from '../storage/types.ts';
import type { Session } from './session.ts';

export async function insertSession(tx: Writer, { session, origin }: StoredSession): Promise<void> {
  await tx.run(
    `INSERT INTO auth_sessions (token_hash, account, mode, device_id, origin, expires_at)
      VALUES (?, ?, ?, ?, ?, ?)`,
    session.id,
    session.account,
    session.mode,
    session.mode === 'device' ? session.deviceId : null,
    origin,
    session.expiresAt,
  );
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
}

/**
 * Reads a session.
 * @param id the hash of its token
 */
export async function readSession(tx: Reader, id: string): Promise<StoredSession | undefined> {
  const row = await tx.get<SessionRow>(
    `SELECT account, mode, device_id, origin, expires_at FROM auth_sessions
      WHERE token_hash = ?`,
    id,
  );
  if (row === undefined) return undefined;
  const { account, origin, expires_at: expiresAt } = row;
  const session: Session =
    row.device_id === null
      ? { id, mode: 'account', account, expiresAt }
      : { id, mode: 'device', account, deviceId: row.device_id, expiresAt };
  return { session, origin };
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
  for (const deviceId of deviceIds) {
    await tx.run(
      'DELETE FROM auth_sessions WHERE account = ? AND device_id = ?',
      account,
      deviceId,
    );
  }
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
  await tx.run(
    `UPDATE auth_sessions SET expires_at = ?
      WHERE account = ? AND device_id = ? AND expires_at > ?`,
    expiresAt,
    account,
    deviceId,
    expiresAt,
  );
}
