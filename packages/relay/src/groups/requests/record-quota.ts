/** How much one account may leave in one group: invitations and requests may carry anything. */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayLimits } from '../../limits.ts';
import type { Reader } from '../../storage/types.ts';

/** Where records of an account are; it has one application and one recovery request at the most. */
const tables = {
  invites: 'SELECT SUM(bytes) FROM group_invites WHERE group_id = ? AND inviter = ? AND live = 1',
  application: 'SELECT SUM(bytes) FROM group_applications WHERE group_id = ? AND account = ?',
  recovery: 'SELECT SUM(bytes) FROM group_recoveries WHERE group_id = ? AND account = ?',
} as const;

/** A record to be stored. */
export interface NewRecord {
  readonly account: string;
  readonly kind: keyof typeof tables;
  /** Its Canonical JSON. */
  readonly text: string;
}

/**
 * Whether a record fits beside the others of its account in the group; an application and a
 * recovery request take the place of the one before.
 *
 * @throws ProtocolError `rate_limited`
 */
export async function checkRecordBytes(
  tx: Reader,
  groupId: string,
  { limits, record }: { readonly limits: RelayLimits; readonly record: NewRecord },
): Promise<void> {
  const { account, kind, text } = record;
  const others = Object.entries(tables).filter(([name]) => name === 'invites' || name !== kind);
  const sums = others.map(([, sum]) => `COALESCE((${sum}), 0)`);
  const row = await tx.get<{ bytes: number }>(
    `SELECT CAST(${sums.join(' + ')} AS BIGINT) AS bytes`,
    ...others.flatMap(() => [groupId, account]),
  );
  if ((row?.bytes ?? 0) + Buffer.byteLength(text) <= limits.groupRecordBytes) return;
  throw new ProtocolError('rate_limited', 'the account has left too much in the group');
}
