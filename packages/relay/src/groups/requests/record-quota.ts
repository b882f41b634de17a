/** Limits the size of an account's records in a group: unknown members may carry anything. */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayLimits } from '../../limits.ts';
import type { Reader } from '../../storage/types.ts';

/**
 * Bytes of what still counts, stored expired records left out: deleting them may have to wait. An
 * account has one application and one recovery request at most, but many invitations.
 */
const sums = {
  invite: `SELECT SUM(bytes) FROM group_invites
    WHERE group_id = ? AND inviter = ? AND live = 1 AND expires_at > ?`,
  application: `SELECT SUM(a.bytes) FROM group_applications a
    JOIN group_invites i ON i.group_id = a.group_id AND i.invite_id = a.invite_id
    WHERE a.group_id = ? AND a.account = ? AND i.expires_at > ?`,
  recovery: `SELECT SUM(bytes) FROM group_recoveries
    WHERE group_id = ? AND account = ? AND expires_at > ?`,
} as const;

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
  check: { readonly limits: RelayLimits; readonly record: NewRecord; readonly now: number },
): Promise<void> {
  const { limits, record, now } = check;
  const { account, kind, text } = record;
  const others = Object.entries(sums).filter(([name]) => name === 'invite' || name !== kind);
  const terms = others.map(([, sum]) => `COALESCE((${sum}), 0)`);
  const row = await tx.get<{ bytes: number }>(
    `SELECT CAST(${terms.join(' + ')} AS BIGINT) AS bytes`,
    ...others.flatMap(() => [groupId, account, now]),
  );
  if ((row?.bytes ?? 0) + Buffer.byteLength(text) <= limits.groupRecordBytes) return;
  throw new ProtocolError(
    'rate_limited',
    'too many bytes of invitations and requests stored by this account in this group',
  );
}
