/** The SQL that only key recovery requests need: they expire, and are listed by the member's role. */
import type { GroupRole } from '@posthouse/protocol';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import {
  deleteRequests,
  type PendingRecovery,
  readRequests,
  requestColumns,
} from './request-store.ts';

/** Reads the requests of accounts that have not expired, by account. */
export async function readPendingRecoveries(
  tx: Reader,
  groupId: string,
  { accounts, now }: { readonly accounts: readonly string[]; readonly now: number },
): Promise<Map<string, PendingRecovery>> {
  const stored = await readRequests(tx, { kind: 'recovery', groupId, accounts });
  return new Map([...stored].filter(([, { expiresAt }]) => expiresAt > now));
}

/** Lists unexpired requests after an account, in the order of their accounts. */
export async function listRecoveries(
  tx: Reader,
  groupId: string,
  {
    only,
    after,
    now,
    limit,
  }: {
    /** Those of accounts with a role, and of one account whatever its role; all if absent. */
    readonly only?: { readonly role: GroupRole; readonly orOf: string } | undefined;
    readonly after: string;
    readonly now: number;
    readonly limit: number;
  },
): Promise<PendingRecovery[]> {
  const inScope = only === undefined ? '' : 'AND (m.role = ? OR r.account = ?)';
  return await tx.all<PendingRecovery & Row>(
    `SELECT ${requestColumns('recovery')} FROM group_recoveries r
      JOIN group_members m ON m.group_id = r.group_id AND m.account = r.account
      WHERE r.group_id = ? AND r.account > ? AND r.expires_at > ? ${inScope}
      ORDER BY r.account LIMIT ?`,
    groupId,
    after,
    now,
    ...(only === undefined ? [] : [only.role, only.orOf]),
    limit,
  );
}

/** Deletes the request of an account; returns whether one was pending. */
export async function deleteRecovery(
  tx: Writer,
  groupId: string,
  { account, now }: { readonly account: string; readonly now: number },
): Promise<boolean> {
  const deleted = await deleteRequests(tx, { kind: 'recovery', groupId, accounts: [account] });
  return deleted.some(({ expiresAt }) => expiresAt > now);
}
