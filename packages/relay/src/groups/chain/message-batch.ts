/** Group messages, many in few statements (decision record 0027). */
import { findStillCallers } from '../../accounts/index.ts';
import type { AppendBatch, BatchWriter, Row } from '../../storage/types.ts';
import { wholeHour } from './event-store.ts';
import { type AppendedGroup, messageKey, type NewGroupMessage } from './new-message.ts';
import { findStaleGroups } from './stale-access.ts';

/** Bytes of a message's rows next to its envelope and its certificate. */
const otherBytes = 512;

/**
 * Stores messages as the single form does. The rows of their groups are locked first, in order: so
 * the statements after that one see what batches of other processes wrote in these groups.
 */
export const messageBatch: AppendBatch<NewGroupMessage, AppendedGroup> = {
  bytes: ({ text, caller }) =>
    otherBytes + Buffer.byteLength(text) + caller.signer.certificate.length,
  async write(tx, messages) {
    const groupIds = [...new Set(messages.map(({ groupId }) => groupId))];
    const [groups, callers, stale, senders] = await Promise.all([
      lockGroups(tx, groupIds),
      findStillCallers(tx, messages),
      findStaleGroups(tx, groupIds),
      findSenders(tx, messages),
    ]);
    const keys = new Set<string>();
    const accepted = new Map<NewGroupMessage, Accepted>();
    for (const [position, message] of messages.entries()) {
      const group = groups.get(message.groupId);
      const sender = senders.get(position);
      const key = messageKey(message.key);
      if (group === undefined || sender === undefined || keys.has(key)) continue;
      if (!callers.has(position) || stale.has(group.group_id)) continue;
      if (group.epoch !== message.epoch || group.sequence >= Number.MAX_SAFE_INTEGER) continue;
      if (group.stored_bytes >= message.mostBytes) continue;
      keys.add(key);
      group.sequence += 1;
      group.stored_bytes += Buffer.byteLength(message.text);
      accepted.set(message, { message, sender, sequence: group.sequence });
    }
    if (accepted.size > 0 && !(await insert(tx, [...accepted.values()], groups))) return undefined;
    return messages.map((message): AppendedGroup | undefined => {
      const { groupId: group_id } = message;
      const { access_ended = 0 } = groups.get(group_id) ?? {};
      const sequence = accepted.get(message)?.sequence;
      return sequence === undefined ? undefined : { group_id, sequence, access_ended };
    });
  },
};

interface OpenGroup extends Row {
  group_id: string;
  epoch: number;
  sequence: number;
  stored_bytes: number;
  access_ended: number;
}

/** Locks the groups that are open, until the end of the transaction. */
async function lockGroups(
  tx: BatchWriter,
  groupIds: readonly string[],
): Promise<ReadonlyMap<string, OpenGroup>> {
  const rows = await tx.all<OpenGroup>(
    `SELECT group_id, epoch, sequence, stored_bytes, access_ended FROM groups
      WHERE group_id = ANY (?::text[]) AND status = 'active' ORDER BY group_id FOR UPDATE`,
    groupIds,
  );
  return new Map(rows.map((row) => [row.group_id, row]));
}

/** What is stored of a message's sender, and already for messages like it. */
interface SenderRow extends Row {
  position: number;
  /** 1 or nothing, as the next two. */
  is_member: number | null;
  is_banned: number | null;
  /** Whether the message's ID has a result, in whatever group. */
  has_result: number | null;
  /** Until when the epoch is kept; nothing if it need not be. */
  epoch_kept: number | null;
  /** Until when the signer's certificate is kept; -1 if it is not stored. */
  certificate_kept: number;
}

/**
 * Finds those messages, by position, whose senders are members and not banned, and whose IDs have no
 * result. Each column is a query of its own, which is planned for one input: joins with the list of
 * inputs would read whole indexes while the server takes the tables for small.
 */
async function findSenders(
  tx: BatchWriter,
  messages: readonly NewGroupMessage[],
): Promise<ReadonlyMap<number, SenderRow>> {
  const rows = await tx.all<SenderRow>(
    `SELECT i.position,
        (SELECT 1 FROM group_members m
          WHERE m.group_id = i.group_id AND m.account = i.account) AS is_member,
        (SELECT 1 FROM group_bans b
          WHERE b.group_id = i.group_id AND b.account = i.account) AS is_banned,
        (SELECT 1 FROM group_sent s
          WHERE s.account = i.account AND s.message_id = i.message_id) AS has_result,
        (SELECT e.keep_until FROM group_epochs e
          WHERE e.group_id = i.group_id AND e.epoch = i.epoch) AS epoch_kept,
        COALESCE((SELECT COALESCE(c.needed_until, ?) FROM group_certificates c
          WHERE c.group_id = i.group_id AND c.certificate_id = i.certificate_id), -1)
          AS certificate_kept
      FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[]) WITH ORDINALITY
        AS i (group_id, epoch, account, message_id, certificate_id, position)`,
    Number.MAX_SAFE_INTEGER,
    messages.map(({ groupId }) => groupId),
    messages.map(({ epoch }) => epoch),
    messages.map(({ key }) => key.account),
    messages.map(({ key }) => key.messageId),
    messages.map(({ caller }) => caller.signer.certificateId),
  );
  const may = rows.filter((row) => row.is_member === 1 && !row.is_banned && !row.has_result);
  return new Map(may.map((row) => [row.position - 1, row]));
}

/** A message with its place in the timeline. */
interface Accepted {
  readonly message: NewGroupMessage;
  readonly sender: SenderRow;
  readonly sequence: number;
}

/**
 * Writes the messages.
 * @returns whether the ID of each still had no result: another process may have accepted it in
 *   another group meanwhile
 */
async function insert(
  tx: BatchWriter,
  accepted: readonly Accepted[],
  groups: ReadonlyMap<string, OpenGroup>,
): Promise<boolean> {
  const [stored] = await Promise.all([
    insertMessages(tx, accepted),
    keepCertificates(tx, accepted),
    keepEpochs(tx, accepted),
    updateGroups(tx, accepted, groups),
  ]);
  return stored === accepted.length;
}

/** @returns the number of results that were new */
async function insertMessages(tx: BatchWriter, accepted: readonly Accepted[]): Promise<number> {
  const rows = await tx.all<{ stored: number }>(
    `WITH new AS MATERIALIZED (
        SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[],
            ?::bigint[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[])
          AS m (account, message_id, group_id, sequence, epoch, accepted_at, keep_until, envelope,
            signer_device_id, certificate_id, bytes, payload)
      ), results AS (
        INSERT INTO group_sent (account, message_id, group_id, sequence, envelope, keep_until)
          SELECT account, message_id, group_id, sequence, envelope, keep_until FROM new
            ORDER BY account, message_id
          ON CONFLICT (account, message_id) DO NOTHING
          RETURNING sequence
      ), messages AS (
        INSERT INTO group_messages (group_id, sequence, epoch, accepted_at, keep_until,
            signer_device_id, certificate_id, bytes, payload)
          SELECT group_id, sequence, epoch, accepted_at, keep_until, signer_device_id,
              certificate_id, bytes, payload
            FROM new
      )
      SELECT count(*) AS stored FROM results`,
    accepted.map(({ message }) => message.key.account),
    accepted.map(({ message }) => message.key.messageId),
    accepted.map(({ message }) => message.groupId),
    accepted.map(({ sequence }) => sequence),
    accepted.map(({ message }) => message.epoch),
    accepted.map(({ message }) => message.now),
    accepted.map(({ message }) => message.keepUntil),
    accepted.map(({ message }) => message.digest),
    accepted.map(({ message }) => message.caller.signer.deviceId),
    accepted.map(({ message }) => message.caller.signer.certificateId),
    accepted.map(({ message }) => Buffer.byteLength(message.text)),
    accepted.map(({ message }) => message.text),
  );
  return rows[0]?.stored ?? 0;
}

/** Keeps certificates that are not kept for long enough; those of most messages are. */
async function keepCertificates(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  const latest = latestOf(accepted, {
    keyOf: ({ message }) => `${message.groupId} ${message.caller.signer.certificateId}`,
    keptUntil: ({ sender }) => sender.certificate_kept,
  });
  if (latest.length === 0) return;
  await tx.run(
    `INSERT INTO group_certificates (group_id, certificate_id, certificate, needed_until)
      SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[])
      ON CONFLICT (group_id, certificate_id) DO UPDATE SET needed_until = excluded.needed_until
        WHERE group_certificates.needed_until < excluded.needed_until`,
    latest.map(({ message }) => message.groupId),
    latest.map(({ message }) => message.caller.signer.certificateId),
    latest.map(({ message }) => message.caller.signer.certificate),
    latest.map(({ message }) => wholeHour(message.keepUntil)),
  );
}

/** Keeps epochs that are not kept for long enough (05 §11.3). */
async function keepEpochs(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  const latest = latestOf(accepted, {
    keyOf: ({ message }) => message.groupId,
    keptUntil: ({ sender }) => sender.epoch_kept ?? Number.MAX_SAFE_INTEGER,
  });
  if (latest.length === 0) return;
  await tx.run(
    `UPDATE group_epochs SET keep_until = i.keep_until
      FROM unnest(?::text[], ?::bigint[], ?::bigint[]) AS i (group_id, epoch, keep_until)
      WHERE group_epochs.group_id = i.group_id AND group_epochs.epoch = i.epoch
        AND group_epochs.keep_until < i.keep_until`,
    latest.map(({ message }) => message.groupId),
    latest.map(({ message }) => message.epoch),
    latest.map(({ message }) => wholeHour(message.keepUntil)),
  );
}

/** Selects of each key the message that is kept longest, if that is longer than what is kept. */
function latestOf(
  accepted: readonly Accepted[],
  of: {
    readonly keyOf: (one: Accepted) => string;
    readonly keptUntil: (one: Accepted) => number;
  },
): Accepted[] {
  const latest = new Map<string, Accepted>();
  for (const one of accepted) {
    const { keepUntil } = one.message;
    if (of.keptUntil(one) >= wholeHour(keepUntil)) continue;
    const known = latest.get(of.keyOf(one))?.message.keepUntil ?? 0;
    if (known < keepUntil) latest.set(of.keyOf(one), one);
  }
  return [...latest.values()];
}

/** Moves the head of each timeline to its last message, and counts the bytes: the rows are locked. */
async function updateGroups(
  tx: BatchWriter,
  accepted: readonly Accepted[],
  groups: ReadonlyMap<string, OpenGroup>,
): Promise<void> {
  const ids = new Set(accepted.map(({ message }) => message.groupId));
  const changed = [...ids].map((id) => groups.get(id)).filter((group) => group !== undefined);
  await tx.run(
    `UPDATE groups SET sequence = i.sequence, stored_bytes = i.stored_bytes
      FROM unnest(?::text[], ?::bigint[], ?::bigint[]) AS i (group_id, sequence, stored_bytes)
      WHERE groups.group_id = i.group_id`,
    changed.map((group) => group.group_id),
    changed.map((group) => group.sequence),
    changed.map((group) => group.stored_bytes),
  );
}
