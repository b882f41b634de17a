/** All SQL that deletes what was retained long enough, in batches of the caller's size. */
import { chunks, forEach, largeRows, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import { dropSet } from '../chain/key-store.ts';

const expiredMessagesSql = `SELECT group_id AS "groupId", sequence, bytes FROM group_messages
  WHERE keep_until <= ? LIMIT ?`;

// The deadline is checked outside the inner query too: the rows may have changed by then.
const expiredSentSql = `DELETE FROM group_sent
  WHERE keep_until <= ? AND (account, message_id) IN
    (SELECT account, message_id FROM group_sent WHERE keep_until <= ? LIMIT ?)`;

/**
 * Deletes messages whose retention ended (05 §11.2), and no longer counts their bytes; returns how many.
 * Groups change in the order of their IDs, as in batches of messages.
 */
export async function deleteExpiredMessages(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  const rows = await tx.all<{ groupId: string; sequence: number; bytes: number }>(
    expiredMessagesSql,
    ...[now, batchSize],
  );
  const byGroup = [...Map.groupBy(rows, ({ groupId }) => groupId)].sort(byId);
  const parts = byGroup.flatMap(([groupId, messages]) => {
    const sequences = messages.map(({ sequence }) => sequence);
    return [...chunks(sequences, largeRows)].map((some) => ({ groupId, some }));
  });
  await forEach(parts, ({ groupId, some }) =>
    tx.run(
      `DELETE FROM group_messages WHERE group_id = ? AND sequence IN (${placeholders(some)})`,
      groupId,
      ...some,
    ),
  );
  await forEach(byGroup, ([groupId, messages]) =>
    tx.run(
      'UPDATE groups SET stored_bytes = stored_bytes - ? WHERE group_id = ?',
      messages.reduce((sum, { bytes }) => sum + bytes, 0),
      groupId,
    ),
  );
  return rows.length;
}

function byId([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** Deletes results of messages whose retention ended (05 §13.28); returns how many. */
export async function deleteExpiredSent(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(expiredSentSql, now, now, batchSize);
}

/** A superseded epoch whose retention ended. */
export interface DueEpoch {
  readonly groupId: string;
  readonly epoch: number;
  /** Unix seconds. */
  readonly deadline: number;
}

const expiredEpochsSql = `SELECT group_id AS "groupId", epoch, keep_until AS deadline
  FROM group_epochs
  WHERE superseded = 1 AND keep_until <= ? AND (keep_until, group_id, epoch) > (?, ?, ?)
  ORDER BY keep_until, group_id, epoch LIMIT ?`;

/** Reads epochs whose retention ended, after the last one found. */
export async function readExpiredEpochs(
  tx: Reader,
  {
    now,
    after,
    batchSize,
  }: {
    readonly now: number;
    readonly after: DueEpoch | undefined;
    readonly batchSize: number;
  },
): Promise<DueEpoch[]> {
  const { deadline = Number.MIN_SAFE_INTEGER, groupId = '', epoch = -1 } = after ?? {};
  const last = [deadline, groupId, epoch] as const;
  return await tx.all<DueEpoch & Row>(expiredEpochsSql, now, ...last, batchSize);
}

/**
 * Deletes superseded epochs of a group whose retention ended (05 §11.3), and drops the sets of boxes
 * that only they used. Later sets stay: the current epoch has one, a staged rotation another.
 */
export async function deleteExpiredEpochs(
  tx: Writer,
  groupId: string,
  { now, batchSize }: { readonly now: number; readonly batchSize: number },
): Promise<number> {
  const before = await readOldestSet(tx, groupId);
  const count = await tx.run(
    `DELETE FROM group_epochs WHERE group_id = ? AND epoch IN
      (SELECT epoch FROM group_epochs
        WHERE group_id = ? AND superseded = 1 AND keep_until <= ? LIMIT ?)`,
    groupId,
    groupId,
    now,
    batchSize,
  );
  const after = await readOldestSet(tx, groupId);
  if (before !== undefined && after !== undefined) {
    await dropSets(tx, groupId, { from: before, below: after });
  }
  return count;
}

/** Reads the set of boxes of the oldest epoch: with it, all sets below were dropped. */
async function readOldestSet(tx: Reader, groupId: string): Promise<number | undefined> {
  const oldest = await tx.get<{ box_set: number }>(
    'SELECT box_set FROM group_epochs WHERE group_id = ? ORDER BY epoch LIMIT 1',
    groupId,
  );
  return oldest?.box_set;
}

/** Drops the sets of a range; sets are numbered in the order in which they come into force. */
async function dropSets(
  tx: Writer,
  groupId: string,
  { from, below }: { readonly from: number; readonly below: number },
): Promise<void> {
  for (let last = from - 1; ; ) {
    const next = await tx.get<{ box_set: number }>(
      `SELECT box_set FROM group_boxes WHERE group_id = ? AND box_set > ? AND box_set < ?
        ORDER BY box_set LIMIT 1`,
      groupId,
      last,
      below,
    );
    if (next === undefined) return;
    last = next.box_set;
    await dropSet(tx, groupId, last);
  }
}

/** A set of boxes that no epoch and no rotation uses. */
export interface DroppedSet {
  readonly groupId: string;
  readonly boxSet: number;
}

/** Reads dropped sets, after the last one found. */
export async function readDroppedSets(
  tx: Reader,
  { after, batchSize }: { readonly after: DroppedSet | undefined; readonly batchSize: number },
): Promise<DroppedSet[]> {
  return await tx.all<DroppedSet & Row>(
    `SELECT group_id AS "groupId", box_set AS "boxSet" FROM group_dropped_sets
      WHERE (group_id, box_set) > (?, ?) ORDER BY group_id, box_set LIMIT ?`,
    after?.groupId ?? '',
    after?.boxSet ?? -1,
    batchSize,
  );
}

/** Deletes boxes of a dropped set, and with the last one the set; returns how many. */
export async function deleteDroppedBoxes(
  tx: Writer,
  { groupId, boxSet }: DroppedSet,
  batchSize: number,
): Promise<number> {
  const count = await tx.run(
    `DELETE FROM group_boxes WHERE group_id = ? AND box_set = ? AND (account, from_epoch) IN
      (SELECT account, from_epoch FROM group_boxes WHERE group_id = ? AND box_set = ? LIMIT ?)`,
    groupId,
    boxSet,
    groupId,
    boxSet,
    batchSize,
  );
  if (count < batchSize) {
    await tx.run(
      'DELETE FROM group_dropped_sets WHERE group_id = ? AND box_set = ?',
      groupId,
      boxSet,
    );
  }
  return count;
}

/** A certificate whose deadline has passed; a record may still show it. */
export interface DueCertificate {
  readonly groupId: string;
  readonly id: string;
  /** Unix seconds. */
  readonly deadline: number;
}

/** Reads certificates whose deadline has passed, after the last one found. */
export async function readDueCertificates(
  tx: Reader,
  {
    now,
    after,
    batchSize,
  }: {
    readonly now: number;
    readonly after: DueCertificate | undefined;
    readonly batchSize: number;
  },
): Promise<DueCertificate[]> {
  return await tx.all<DueCertificate & Row>(
    `SELECT group_id AS "groupId", certificate_id AS id, needed_until AS deadline
      FROM group_certificates
      WHERE needed_until IS NOT NULL AND needed_until <= ?
        AND (needed_until, group_id, certificate_id) > (?, ?, ?)
      ORDER BY needed_until, group_id, certificate_id LIMIT ?`,
    now,
    after?.deadline ?? Number.MIN_SAFE_INTEGER,
    after?.groupId ?? '',
    after?.id ?? '',
    batchSize,
  );
}

/** Seconds after which a certificate that a record still shows is checked again. */
const recheckAfter = 3_600;

const shownSql = ['group_invites', 'group_applications', 'group_recoveries']
  .map((table) => {
    const live = table === 'group_invites' ? ' AND r.live = 1' : '';
    return `EXISTS (SELECT 1 FROM ${table} r WHERE r.group_id = group_certificates.group_id
      AND r.certificate_id = group_certificates.certificate_id${live})`;
  })
  .join(' OR ');

/**
 * Deletes certificates of a group that no readable object refers to. Messages were deleted at the
 * deadlines of their certificates, earlier in the same run; records may outlast the deadline.
 */
export async function deleteCertificates(
  tx: Writer,
  groupId: string,
  { ids, now }: { readonly ids: readonly string[]; readonly now: number },
): Promise<void> {
  for (const some of chunks(ids)) {
    const due = `group_id = ? AND certificate_id IN (${placeholders(some)}) AND needed_until <= ?`;
    await tx.run(
      `UPDATE group_certificates SET needed_until = ? WHERE ${due} AND (${shownSql})`,
      now + recheckAfter,
      groupId,
      ...some,
      now,
    );
    await tx.run(`DELETE FROM group_certificates WHERE ${due}`, groupId, ...some, now);
  }
}

const nextDeadlineSql = `SELECT MIN(deadline) AS deadline FROM (
  SELECT MIN(keep_until) AS deadline FROM group_messages WHERE keep_until > ?
  UNION ALL SELECT MIN(keep_until) FROM group_sent WHERE keep_until > ?
  UNION ALL SELECT MIN(keep_until) FROM group_epochs WHERE superseded = 1 AND keep_until > ?
  UNION ALL SELECT MIN(needed_until) FROM group_certificates
    WHERE needed_until IS NOT NULL AND needed_until > ?
) AS deadlines`;

/** Reads when something must be deleted next; `undefined` if nothing has a deadline. */
export async function nextRetentionDeadline(tx: Reader, now: number): Promise<number | undefined> {
  const row = await tx.get<{ deadline: number | null }>(nextDeadlineSql, now, now, now, now);
  return row?.deadline ?? undefined;
}
