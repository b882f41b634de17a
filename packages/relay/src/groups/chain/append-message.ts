/** An accepted group message as one small write (05 §13.28). */
import { isStillCaller } from '../../accounts/index.ts';
import type { AppendKind, Row, Statement, SyncWriter } from '../../storage/types.ts';
import { insertMessage, insertSent, keepCertificate, wholeHour } from './event-store.ts';
import { setSequence } from './group-store.ts';
import { keepEpoch } from './key-store.ts';
import { messageBatch } from './message-batch.ts';
import { type AppendedGroup, messageKey, type NewGroupMessage } from './new-message.ts';
import { hasStaleAccess } from './stale-access.ts';

/** Declines a repeat, and a message that has to be refused. */
export const groupMessages: AppendKind<NewGroupMessage, AppendedGroup> = {
  name: 'groups.message',
  aggregates: ({ groupId, key }) => [`group:${groupId}`, messageKey(key)],
  apply(tx, message) {
    const { groupId, caller, now } = message;
    if (!isStillCaller(tx, caller, now) || hasStaleAccess(tx, groupId)) return undefined;
    const group = tx.get<OpenGroup>(...openGroup(message));
    if (group === undefined || group.sequence >= Number.MAX_SAFE_INTEGER) return undefined;
    if (group.stored_bytes >= message.mostBytes) return undefined;
    const sequence = group.sequence + 1;
    const { key, digest: envelope, keepUntil } = message;
    // Its key is what tells a repeat.
    if (tx.run(...insertSent(key, { groupId, sequence, envelope, keepUntil })) === 0) {
      return undefined;
    }
    write(tx, message, { ...group, sequence });
    return { group_id: groupId, sequence, access_ended: group.access_ended };
  },
  batch: messageBatch,
};

/** A group that its member may send to, with what is stored already for messages like this one. */
interface OpenGroup extends Row {
  sequence: number;
  stored_bytes: number;
  access_ended: number;
  /** Until when the epoch is kept. */
  epoch_kept: number | null;
  /** Until when the signer's certificate is kept; -1 if it is not stored. */
  certificate_kept: number;
}

/** Finds the group if it is open, in the message's epoch, and the sender a member and not banned. */
function openGroup({ groupId, caller, epoch, key: { account } }: NewGroupMessage): Statement {
  return [
    `SELECT g.sequence, g.stored_bytes, g.access_ended,
        (SELECT e.keep_until FROM group_epochs e
          WHERE e.group_id = g.group_id AND e.epoch = g.epoch) AS epoch_kept,
        COALESCE((SELECT COALESCE(c.needed_until, ?) FROM group_certificates c
          WHERE c.group_id = g.group_id AND c.certificate_id = ?), -1) AS certificate_kept
      FROM groups g JOIN group_members m ON m.group_id = g.group_id AND m.account = ?
      WHERE g.group_id = ? AND g.status = 'active' AND g.epoch = ?
        AND NOT EXISTS (SELECT 1 FROM group_bans b
          WHERE b.group_id = g.group_id AND b.account = m.account)`,
    Number.MAX_SAFE_INTEGER,
    caller.signer.certificateId,
    account,
    groupId,
    epoch,
  ];
}

function write(tx: SyncWriter, message: NewGroupMessage, group: OpenGroup): void {
  const { groupId, caller, epoch, text, now, keepUntil } = message;
  const { signer } = caller;
  const { sequence } = group;
  const deadline = wholeHour(keepUntil);
  if (group.certificate_kept < deadline) {
    tx.run(...keepCertificate(groupId, { signer, neededUntil: keepUntil }));
  }
  const event = { sequence, epoch, acceptedAt: now, payload: text };
  tx.run(...insertMessage(groupId, { event, signer, keepUntil }));
  if (group.epoch_kept !== null && group.epoch_kept < deadline) {
    tx.run(...keepEpoch(groupId, { epoch, keepUntil: deadline }));
  }
  tx.run(...setSequence(groupId, { sequence, bytes: Buffer.byteLength(text) }));
}
