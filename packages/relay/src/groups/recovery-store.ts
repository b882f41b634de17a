/** All SQL of key recovery requests. */
import type { GroupRole } from '@posthouse/protocol';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** A pending request. */
export interface StoredRecovery {
  readonly account: string;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
  readonly acceptedAt: number;
  /** Unix seconds; from then on it is over. */
  readonly expiresAt: number;
  /** Canonical JSON. */
  readonly request: string;
}

const columns = `r.account, r.device_id AS "deviceId", r.certificate_id AS "certificateId",
  r.accepted_at AS "acceptedAt", r.expires_at AS "expiresAt", r.request`;

/** The request of an account, unless it has expired. */
export async function readRecovery(
  tx: Reader,
  groupId: string,
  { account, now }: { readonly account: string; readonly now: number },
): Promise<StoredRecovery | undefined> {
  return await tx.get<StoredRecovery & Row>(
    `SELECT ${columns} FROM group_recoveries r
      WHERE r.group_id = ? AND r.account = ? AND r.expires_at > ?`,
    groupId,
    account,
    now,
  );
}

/**
 * Unexpired requests behind an account, in the order of their accounts, with the present roles of
 * those accounts.
 */
export async function readRecoveries(
  tx: Reader,
  groupId: string,
  { after, now, most }: { readonly after: string; readonly now: number; readonly most: number },
): Promise<(StoredRecovery & { readonly role: GroupRole })[]> {
  return await tx.all<StoredRecovery & Row & { role: GroupRole }>(
    `SELECT ${columns}, m.role FROM group_recoveries r
      JOIN group_members m ON m.group_id = r.group_id AND m.account = r.account
      WHERE r.group_id = ? AND r.account > ? AND r.expires_at > ?
      ORDER BY r.account LIMIT ?`,
    groupId,
    after,
    now,
    most,
  );
}

/** Stores a request; an earlier one of the account is replaced. */
export async function writeRecovery(
  tx: Writer,
  groupId: string,
  recovery: StoredRecovery,
): Promise<void> {
  await tx.run(
    `INSERT INTO group_recoveries (group_id, account, device_id, certificate_id, accepted_at,
        expires_at, request)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (group_id, account) DO UPDATE SET device_id = excluded.device_id,
        certificate_id = excluded.certificate_id, accepted_at = excluded.accepted_at,
        expires_at = excluded.expires_at, request = excluded.request`,
    groupId,
    recovery.account,
    recovery.deviceId,
    recovery.certificateId,
    recovery.acceptedAt,
    recovery.expiresAt,
    recovery.request,
  );
}

/** Removes the request of an account; says whether one was pending. */
export async function deleteRecovery(
  tx: Writer,
  groupId: string,
  { account, now }: { readonly account: string; readonly now: number },
): Promise<boolean> {
  const row = await tx.get<{ expires_at: number }>(
    'DELETE FROM group_recoveries WHERE group_id = ? AND account = ? RETURNING expires_at',
    groupId,
    account,
  );
  return row !== undefined && row.expires_at > now;
}
