/** SQL of invites, and of the accounts that showed one. */
import type { Reader, Row, Writer } from '../storage/types.ts';

/** An invite as it is stored. */
export interface StoredInvite {
  readonly id: string;
  /** SHA-256 of the code. */
  readonly digest: string;
  /** Accounts that it lets in. */
  readonly uses: number;
  /** Accounts that it has let in. */
  readonly used: number;
  /** The operator's remark; may be empty. */
  readonly note: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

const columns = `id, digest, uses, used, note, created_at AS "createdAt", expires_at AS "expiresAt"`;

/** Adds an invite, unless `limit` are stored; returns whether there was room. */
export async function insertInvite(
  tx: Writer,
  invite: StoredInvite,
  limit: number,
): Promise<boolean> {
  const row = await tx.get<{ stored: number }>(
    'SELECT COUNT(*) AS stored FROM registration_invites',
  );
  if (Number(row?.stored) >= limit) return false;
  const { id, digest, uses, used, note, createdAt, expiresAt } = invite;
  await tx.run(
    `INSERT INTO registration_invites (id, digest, uses, used, note, created_at, expires_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ...[id, digest, uses, used, note, createdAt, expiresAt],
  );
  return true;
}

/** Lists invites after a creation time and ID, the newest last; at most `limit`. */
export async function listInvites(
  tx: Reader,
  limit: number,
  [createdAt, id]: readonly [number, string],
): Promise<StoredInvite[]> {
  return await tx.all<StoredInvite & Row>(
    `SELECT ${columns} FROM registration_invites WHERE (created_at, id) > (?, ?)
      ORDER BY created_at, id LIMIT ?`,
    createdAt,
    id,
    limit,
  );
}

/** Tells whether any invite can be used. */
export async function hasUsableInvite(tx: Reader, now: number): Promise<boolean> {
  const row = await tx.get(
    'SELECT id FROM registration_invites WHERE expires_at > ? AND used < uses LIMIT 1',
    now,
  );
  return row !== undefined;
}

/** Tells whether an invite can be used. */
export async function isUsable(tx: Reader, digest: string, now: number): Promise<boolean> {
  const row = await tx.get(
    'SELECT id FROM registration_invites WHERE digest = ? AND expires_at > ? AND used < uses',
    digest,
    now,
  );
  return row !== undefined;
}

/** Counts one use of an invite; returns false if none is left. */
export async function countUse(tx: Writer, digest: string, now: number): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE registration_invites SET used = used + 1
      WHERE digest = ? AND expires_at > ? AND used < uses`,
    digest,
    now,
  );
  return changed === 1;
}

/** Removes an invite with the claims of it, by its ID; returns whether there was one. */
export async function deleteInvite(tx: Writer, id: string): Promise<boolean> {
  const row = await tx.get<{ digest: string }>(
    'DELETE FROM registration_invites WHERE id = ? RETURNING digest',
    id,
  );
  if (row === undefined) return false;
  await deleteClaimsOf(tx, row.digest);
  return true;
}

/** Returns up to `limit` invites that expired before a time. */
export async function readExpired(tx: Reader, before: number, limit: number): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    'SELECT id FROM registration_invites WHERE expires_at < ? ORDER BY expires_at LIMIT ?',
    before,
    limit,
  );
  return rows.map(({ id }) => id);
}

/** Returns when the first invite expires, Unix seconds. */
export async function firstExpiry(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ until: number }>(
    'SELECT expires_at AS until FROM registration_invites ORDER BY expires_at LIMIT 1',
  );
  return row?.until;
}

/** Stores which invite an account showed, in place of an earlier one. */
export async function writeClaim(
  tx: Writer,
  claim: { readonly account: string; readonly invite: string; readonly now: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO registration_claims (account, invite, claimed_at) VALUES (?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET invite = excluded.invite,
        claimed_at = excluded.claimed_at`,
    claim.account,
    claim.invite,
    claim.now,
  );
}

/** Removes the oldest claims of an invite, so that `limit` are left. */
export async function deleteOldClaims(tx: Writer, invite: string, limit: number): Promise<void> {
  await tx.run(
    `DELETE FROM registration_claims WHERE account IN
      (SELECT account FROM registration_claims WHERE invite = ?
        ORDER BY claimed_at DESC, account DESC LIMIT 1000000 OFFSET ?)`,
    invite,
    limit,
  );
}

/** Returns the digest of the invite that an account showed. */
export async function readClaim(tx: Reader, account: string): Promise<string | undefined> {
  const row = await tx.get<{ invite: string }>(
    'SELECT invite FROM registration_claims WHERE account = ?',
    account,
  );
  return row?.invite;
}

export async function deleteClaim(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM registration_claims WHERE account = ?', account);
}

async function deleteClaimsOf(tx: Writer, invite: string): Promise<void> {
  await tx.run('DELETE FROM registration_claims WHERE invite = ?', invite);
}
