/** All SQL that removes what has been kept long enough. Portions are bounded by the caller. */
import type { Reader, Row, Writer } from '../storage/types.ts';
import { dropSet } from './key-store.ts';

// Deadlines stand outside the inner queries too: the rows may be others by then.
const expiredMessagesSql = `DELETE FROM group_messages
  WHERE keep_until <= ? AND (group_id, sequence) IN
    (SELECT group_id, sequence FROM group_messages WHERE keep_until <= ? LIMIT ?)`;

const expiredSentSql = `DELETE FROM group_sent
  WHERE keep_until <= ? AND (account, message_id) IN
    (SELECT account, message_id FROM group_sent WHERE keep_until <= ? LIMIT ?)`;

/** Removes messages whose retention ended (05 §11.2); says how many went. */
export async function deleteExpiredMessages(
  tx: Writer,
  now: number,
  portion: number,
): Promise<number> {
  return await tx.run(expiredMessagesSql, now, now, portion);
}

/** Removes results of messages that need not be repeated any more (05 §13.28). */
export async function deleteExpiredSent(tx: Writer, now: number, portion: number): Promise<number> {
  return await tx.run(expiredSentSql, now, now, portion);
}

const expiredEpochsSql = `SELECT group_id FROM group_epochs
  WHERE superseded = 1 AND keep_until <= ? ORDER BY keep_until LIMIT ?`;

/** Groups with epochs whose time is over, of a portion of those epochs. */
export async function readExpiredEpochs(
  tx: Reader,
  now: number,
  portion: number,
): Promise<string[]> {
  const rows = await tx.all<{ group_id: string }>(expiredEpochsSql, now, portion);
  return [...new Set(rows.map(({ group_id }) => group_id))];
}

/**
 * Removes superseded epochs of a group whose time is over (05 §11.3), and leaves to
 * {@link deleteDroppedBoxes} the boxes of sets that only they had. Those of later sets stay: the
 * epoch in force has one, a staged rotation another.
 */
export async function deleteExpiredEpochs(
  tx: Writer,
  groupId: string,
  { now, portion }: { readonly now: number; readonly portion: number },
): Promise<number> {
  const count = await tx.run(
    `DELETE FROM group_epochs WHERE group_id = ? AND epoch IN
      (SELECT epoch FROM group_epochs
        WHERE group_id = ? AND superseded = 1 AND keep_until <= ? LIMIT ?)`,
    groupId,
    groupId,
    now,
    portion,
  );
  const oldest = await tx.get<{ box_set: number }>(
    'SELECT box_set FROM group_epochs WHERE group_id = ? ORDER BY epoch LIMIT 1',
    groupId,
  );
  if (oldest !== undefined) await dropSetsBelow(tx, groupId, oldest.box_set);
  return count;
}

/** Sets are numbered in the order in which they come into force. */
async function dropSetsBelow(tx: Writer, groupId: string, lowest: number): Promise<void> {
  for (let last = -1; ; ) {
    const next = await tx.get<{ box_set: number }>(
      `SELECT box_set FROM group_boxes WHERE group_id = ? AND box_set > ? AND box_set < ?
        ORDER BY box_set LIMIT 1`,
      groupId,
      last,
      lowest,
    );
    if (next === undefined) return;
    last = next.box_set;
    await dropSet(tx, groupId, last);
  }
}

/** Removes boxes of sets that nothing refers to, and the sets whose boxes are gone. */
export async function deleteDroppedBoxes(tx: Writer, portion: number): Promise<number> {
  const dropped = await tx.get<{ group_id: string; box_set: number } & Row>(
    'SELECT group_id, box_set FROM group_dropped_sets ORDER BY group_id, box_set LIMIT 1',
  );
  if (dropped === undefined) return 0;
  const { group_id: groupId, box_set: boxSet } = dropped;
  const count = await tx.run(
    `DELETE FROM group_boxes WHERE group_id = ? AND box_set = ? AND (account, from_epoch) IN
      (SELECT account, from_epoch FROM group_boxes WHERE group_id = ? AND box_set = ? LIMIT ?)`,
    groupId,
    boxSet,
    groupId,
    boxSet,
    portion,
  );
  if (count < portion) {
    await tx.run(
      'DELETE FROM group_dropped_sets WHERE group_id = ? AND box_set = ?',
      groupId,
      boxSet,
    );
  }
  return count + 1;
}

const nextDeadlineSql = `SELECT MIN(deadline) AS deadline FROM (
  SELECT MIN(keep_until) AS deadline FROM group_messages
  UNION ALL SELECT MIN(keep_until) FROM group_sent
  UNION ALL SELECT MIN(keep_until) FROM group_epochs WHERE superseded = 1
) AS deadlines`;

/** When something has to be removed next, or `undefined` where nothing is kept for a time. */
export async function nextRetentionDeadline(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ deadline: number | null }>(nextDeadlineSql);
  return row?.deadline ?? undefined;
}
