/** All SQL of key recovery requests. */
import type { GroupRole } from '@posthouse/protocol';
import { digest } from '../../digest.ts';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import type { StoredRecord } from './verify-requests.ts';

/** A pending request without its text, which may be large. */
export interface PendingRecovery {
  readonly account: string;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
  readonly acceptedAt: number;
  /** Unix seconds; from then on it is over. */
  readonly expiresAt: number;
  /** The member key it asks for. */
  readonly memberKey: string;
  /** Of its Canonical JSON. */
  readonly digest: string;
  /** Of its Canonical JSON in UTF-8. */
  readonly bytes: number;
}

const columns = `r.account, r.device_id AS "deviceId", r.certificate_id AS "certificateId",
  r.accepted_at AS "acceptedAt", r.expires_at AS "expiresAt", r.member_key AS "memberKey",
  r.digest, r.bytes`;

/** The requests of these accounts that have not expired. */
export async function readPendingRecoveries(
  tx: Reader,
  groupId: string,
  { accounts, now }: { readonly accounts: readonly string[]; readonly now: number },
): Promise<Map<string, PendingRecovery>> {
  const found = new Map<string, PendingRecovery>();
  for (const some of chunks(accounts)) {
    const rows = await tx.all<PendingRecovery & Row>(
      `SELECT ${columns} FROM group_recoveries r
        WHERE r.group_id = ? AND r.expires_at > ? AND r.account IN (${placeholders(some)})`,
      groupId,
      now,
      ...some,
    );
    for (const row of rows) found.set(row.account, row);
  }
  return found;
}

/** Unexpired requests behind an account, in the order of their accounts. */
export async function listRecoveries(
  tx: Reader,
  groupId: string,
  {
    only,
    after,
    now,
    most,
  }: {
    /** Of accounts with a role, and of one account whatever its role is; all where it is absent. */
    readonly only?: { readonly role: GroupRole; readonly orOf: string } | undefined;
    readonly after: string;
    readonly now: number;
    readonly most: number;
  },
): Promise<PendingRecovery[]> {
  const fits = only === undefined ? '' : 'AND (m.role = ? OR r.account = ?)';
  return await tx.all<PendingRecovery & Row>(
    `SELECT ${columns} FROM group_recoveries r
      JOIN group_members m ON m.group_id = r.group_id AND m.account = r.account
      WHERE r.group_id = ? AND r.account > ? AND r.expires_at > ? ${fits}
      ORDER BY r.account LIMIT ?`,
    groupId,
    after,
    now,
    ...(only === undefined ? [] : [only.role, only.orOf]),
    most,
  );
}

/** The request of an account with the certificate it was accepted with. */
export async function readRecoveryRecord(
  tx: Reader,
  groupId: string,
  account: string,
): Promise<StoredRecord | undefined> {
  return await tx.get<StoredRecord & Row>(
    `SELECT r.account, r.request AS record, c.certificate FROM group_recoveries r
      JOIN group_certificates c
        ON c.group_id = r.group_id AND c.certificate_id = r.certificate_id
      WHERE r.group_id = ? AND r.account = ?`,
    groupId,
    account,
  );
}

/** Stores a request; an earlier one of the account is replaced. */
export async function writeRecovery(
  tx: Writer,
  groupId: string,
  recovery: Omit<PendingRecovery, 'bytes' | 'digest'> & { readonly request: string },
): Promise<void> {
  await tx.run(
    `INSERT INTO group_recoveries (group_id, account, device_id, certificate_id, accepted_at,
        expires_at, member_key, digest, bytes, request)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (group_id, account) DO UPDATE SET device_id = excluded.device_id,
        certificate_id = excluded.certificate_id, accepted_at = excluded.accepted_at,
        expires_at = excluded.expires_at, member_key = excluded.member_key,
        digest = excluded.digest, bytes = excluded.bytes, request = excluded.request`,
    groupId,
    recovery.account,
    recovery.deviceId,
    recovery.certificateId,
    recovery.acceptedAt,
    recovery.expiresAt,
    recovery.memberKey,
    digest(recovery.request),
    Buffer.byteLength(recovery.request),
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
