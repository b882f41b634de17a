/** All SQL of challenges and sessions. Secrets are kept as SHA-256 only. */
import type { Session } from '../call.ts';
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Migration, Reader, Writer } from '../storage/types.ts';

export const migrations: readonly Migration[] = [
  {
    id: 100,
    name: 'auth: challenges and sessions',
    statements: [
      `CREATE TABLE auth_challenges (
        nonce_hash TEXT PRIMARY KEY,
        account TEXT NOT NULL,
        origin TEXT NOT NULL,
        expires_at BIGINT NOT NULL
      )`,
      'CREATE INDEX auth_challenges_by_expiry ON auth_challenges (expires_at)',
      `CREATE TABLE auth_sessions (
        token_hash TEXT PRIMARY KEY,
        account TEXT NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('device', 'account')),
        device_id TEXT,
        origin TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        CHECK ((mode = 'device') = (device_id IS NOT NULL))
      )`,
      'CREATE INDEX auth_sessions_by_expiry ON auth_sessions (expires_at)',
      `CREATE INDEX auth_sessions_by_device ON auth_sessions (account, device_id)
        WHERE device_id IS NOT NULL`,
    ],
  },
];

export interface StoredChallenge {
  readonly account: string;
  readonly origin: string;
  readonly expiresAt: number;
}

export async function insertChallenge(
  tx: Writer,
  nonceHash: string,
  challenge: StoredChallenge,
): Promise<void> {
  await tx.run(
    'INSERT INTO auth_challenges (nonce_hash, account, origin, expires_at) VALUES (?, ?, ?, ?)',
    nonceHash,
    challenge.account,
    challenge.origin,
    challenge.expiresAt,
  );
}

/** Takes a challenge out: check and consumption are one step, whatever follows (02 §9.2). */
export async function takeChallenge(
  tx: Writer,
  nonceHash: string,
): Promise<StoredChallenge | undefined> {
  const row = await tx.get<{ account: string; origin: string; expires_at: number }>(
    'DELETE FROM auth_challenges WHERE nonce_hash = ? RETURNING account, origin, expires_at',
    nonceHash,
  );
  if (row === undefined) return undefined;
  return { account: row.account, origin: row.origin, expiresAt: row.expires_at };
}

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

/** @param id the hash of its token */
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

/** When these sessions end, by ID; those that are not stored are over. */
export async function readEnds(
  tx: Reader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const ends = new Map<string, number>();
  for (const some of chunks(ids)) {
    const rows = await tx.all<{ token_hash: string; expires_at: number }>(
      `SELECT token_hash, expires_at FROM auth_sessions WHERE token_hash IN (${placeholders(some)})`,
      ...some,
    );
    for (const row of rows) ends.set(row.token_hash, row.expires_at);
  }
  return ends;
}

/**
 * Ends every session of these devices. Called by whoever removes the devices, in the same
 * transaction; a `revoked` notice then tells the connections (02 §10.3).
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
 * Ends every session of a device at `expiresAt`, where it would end later. Called by whoever puts a
 * shorter certificate in force, in the same transaction; a `capped` notice then tells the
 * connections: no session outlives its device's latest certificate (02 §10.2, §10.3).
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

/** Removes up to `portion` rows of each kind whose time has come; says how many went. */
export async function deleteExpired(tx: Writer, now: number, portion: number): Promise<number> {
  const challenges = await tx.run(
    `DELETE FROM auth_challenges WHERE nonce_hash IN
      (SELECT nonce_hash FROM auth_challenges WHERE expires_at <= ? LIMIT ?)`,
    now,
    portion,
  );
  const sessions = await tx.run(
    `DELETE FROM auth_sessions WHERE token_hash IN
      (SELECT token_hash FROM auth_sessions WHERE expires_at <= ? LIMIT ?)`,
    now,
    portion,
  );
  return challenges + sessions;
}
