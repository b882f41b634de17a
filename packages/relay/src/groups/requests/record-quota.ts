/** Limits the size of an account's records in a group: unknown members may carry anything. */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayLimits } from '../../limits.ts';
import type { Reader } from '../../storage/types.ts';
import { requestTables } from './request-store.ts';

/** An account has one application and one recovery request at most, but many invitations. */
const sums = {
  invite: 'SELECT SUM(bytes) FROM group_invites WHERE group_id = ? AND inviter = ? AND live = 1',
  application: sumOf(requestTables.application.table),
  recovery: sumOf(requestTables.recovery.table),
} as const;

function sumOf(table: string): string {
  return `SELECT SUM(bytes) FROM ${table} WHERE group_id = ? AND account = ?`;
}

/** A record to be stored. */
export interface NewRecord {
  readonly account: string;
  readonly kind: keyof typeof sums;
  /** Its Canonical JSON. */
  readonly text: string;
}

/**
 * Checks that a record fits with the other records of its account in the group. A request replaces
 * the earlier one of its kind, which is not counted.
 *
 * @throws ProtocolError `rate_limited`
 */
export async function checkRecordBytes(
  tx: Reader,
  groupId: string,
  { limits, record }: { readonly limits: RelayLimits; readonly record: NewRecord },
): Promise<void> {
  const { account, kind, text } = record;
  const others = Object.entries(sums).filter(([name]) => name === 'invite' || name !== kind);
  const terms = others.map(([, sum]) => `COALESCE((${sum}), 0)`);
  const row = await tx.get<{ bytes: number }>(
    `SELECT CAST(${terms.join(' + ')} AS BIGINT) AS bytes`,
    ...others.flatMap(() => [groupId, account]),
  );
  if ((row?.bytes ?? 0) + Buffer.byteLength(text) <= limits.groupRecordBytes) return;
  throw new ProtocolError(
    'rate_limited',
    'too many bytes of invitations and requests stored by this account in this group',
  );
}
