/**
 * The tables of challenges and sessions, all SQL of challenges, and expiry. Secrets are stored as
 * SHA-256 only.
 */
import type { Migration, Writer } from '../storage/types.ts';

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
  {
    id: 101,
    name: 'auth: order of the sessions of an account',
    statements: [
      'ALTER TABLE auth_sessions ADD COLUMN opened_at BIGINT NOT NULL DEFAULT 0',
      'DROP INDEX auth_sessions_by_device',
      'CREATE INDEX auth_sessions_by_device ON auth_sessions (account, device_id, opened_at)',
      'CREATE INDEX auth_sessions_by_account ON auth_sessions (account, opened_at)',
    ],
  },
  {
    id: 102,
    name: 'auth: log of ended sessions',
    statements: [
      'CREATE TABLE auth_session_ends (number BIGINT PRIMARY KEY, account TEXT NOT NULL)',
      // One row, with the number of the last entry.
      'CREATE TABLE auth_session_ends_head (id BIGINT PRIMARY KEY, number BIGINT NOT NULL)',
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

/** Deletes a challenge and returns it: it cannot be used again (02 §9.2). */
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

/** Removes up to `batchSize` expired rows of each kind; returns how many. */
export async function deleteExpired(tx: Writer, now: number, batchSize: number): Promise<number> {
  const challenges = await tx.run(
    `DELETE FROM auth_challenges WHERE nonce_hash IN
      (SELECT nonce_hash FROM auth_challenges WHERE expires_at <= ? LIMIT ?)`,
    now,
    batchSize,
  );
  const sessions = await tx.run(
    `DELETE FROM auth_sessions WHERE token_hash IN
      (SELECT token_hash FROM auth_sessions WHERE expires_at <= ? LIMIT ?)`,
    now,
    batchSize,
  );
  return challenges + sessions;
}
