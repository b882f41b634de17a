/** All SQL that removes expired rows of channels (06 §7.5). The caller bounds the batches. */
import { chunks, forEach, largeRows, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, SqlValue, Writer } from '../storage/types.ts';
import { freeBytes } from './channel-store.ts';
import type { StoredPost } from './post-store.ts';

/** An event: its channel and sequence. */
export interface EventKey {
  readonly channelId: string;
  readonly sequence: number;
}

/** An event whose row is due. */
export interface DueEvent extends EventKey {
  /** Its deadline, Unix seconds. */
  readonly deadline: number;
}

/** A batch of deadlines up to now, after the last one found. */
export interface DueRange {
  readonly now: number;
  readonly after: DueEvent | undefined;
  readonly batchSize: number;
}

/** Returns the values of a range in the order of the statements below. */
function valuesOf({ now, after, batchSize }: DueRange): [number, number, string, number, number] {
  const { deadline = Number.MIN_SAFE_INTEGER, channelId = '', sequence = -1 } = after ?? {};
  return [now, deadline, channelId, sequence, batchSize];
}

/** Reads posts whose row is due, the longest overdue first. */
export async function readDuePosts(tx: Reader, range: DueRange): Promise<DueEvent[]> {
  return await tx.all<DueEvent & Row>(
    `SELECT channel_id AS "channelId", sequence, clear_after AS deadline FROM channel_posts
      WHERE clear_after <= ? AND (clear_after, channel_id, sequence) > (?, ?, ?)
      ORDER BY clear_after, channel_id, sequence LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Reads deletions or superseded descriptors that are due, the longest overdue first. */
export async function readDueEvents(
  tx: Reader,
  kind: 'delete' | 'descriptor',
  range: DueRange,
): Promise<DueEvent[]> {
  return await tx.all<DueEvent & Row>(
    `SELECT channel_id AS "channelId", sequence, clear_after AS deadline FROM channel_events
      WHERE kind = ? AND clear_after IS NOT NULL AND clear_after <= ?
        AND (clear_after, channel_id, sequence) > (?, ?, ?)
      ORDER BY clear_after, channel_id, sequence LIMIT ?`,
    kind,
    ...valuesOf(range),
  );
}

/** Reads hidden posts that may still have edits. */
export async function readHiddenPosts(
  tx: Reader,
  { after, batchSize }: DueRange,
): Promise<DueEvent[]> {
  return await tx.all<DueEvent & Row>(
    `SELECT channel_id AS "channelId", sequence, 0 AS deadline FROM channel_hidden_posts
      WHERE (channel_id, sequence) > (?, ?) ORDER BY channel_id, sequence LIMIT ?`,
    after?.channelId ?? '',
    after?.sequence ?? -1,
    batchSize,
  );
}

/**
 * Removes posts of a channel that are still due, with their events. Their edits become unreadable;
 * {@link deleteHiddenEdits} removes them.
 *
 * @returns number of removed posts
 */
export async function deletePosts(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const chunk of chunks(sequences, largeRows)) {
    // A deletion that was accepted meanwhile may have moved the deadline.
    const due = `channel_id = ? AND sequence IN (${placeholders(chunk)}) AND clear_after <= ?`;
    const values = [channelId, ...chunk, now];
    const rows = await tx.all<RemovedPost>(
      `SELECT sequence, withheld_at FROM channel_posts WHERE ${due}`,
      ...values,
    );
    await tx.run(`DELETE FROM channel_posts WHERE ${due}`, ...values);
    count += rows.length;
    await afterRemoval(tx, channelId, await deletePostEvents(tx, channelId, rows));
  }
  return count;
}

/** A post that is not readable any more, and whether it was withheld. */
type RemovedPost = Pick<StoredPost, 'sequence' | 'withheld_at'>;

/** Tables of posts and edits: the timeline and the withheld ones. */
const eventTables = ['channel_events', 'channel_withheld_events'] as const;
type EventTable = (typeof eventTables)[number];

/**
 * Removes the events of posts and marks posts with edits for {@link deleteHiddenEdits}.
 *
 * @returns the removed events, for {@link afterRemoval}
 */
export async function deletePostEvents(
  tx: Writer,
  channelId: string,
  posts: readonly RemovedPost[],
): Promise<readonly RemovedEvent[]> {
  const events: RemovedEvent[] = [];
  for (const table of eventTables) {
    const present = table === 'channel_events' ? posts : posts.filter((post) => post.withheld_at);
    await forEach(present, ({ sequence }) => tx.run(hideEditedSql(table), channelId, sequence));
    for (const chunk of chunks(
      present.map(({ sequence }) => sequence),
      largeRows,
    )) {
      const those = `channel_id = ? AND sequence IN (${placeholders(chunk)}) AND kind = 'post'`;
      events.push(...(await removeEvents(tx, { table, those }, [channelId, ...chunk])));
    }
  }
  return events;
}

/** Removes the events that a condition names; returns what is counted of them. */
async function removeEvents(
  tx: Writer,
  { table, those }: { readonly table: EventTable; readonly those: string },
  values: readonly SqlValue[],
): Promise<RemovedEvent[]> {
  const rows = await tx.all<RemovedEvent>(
    `SELECT signer_device_id, bytes FROM ${table} WHERE ${those}`,
    ...values,
  );
  if (rows.length > 0) await tx.run(`DELETE FROM ${table} WHERE ${those}`, ...values);
  return rows;
}

const hideEditedSql = (
  table: EventTable,
) => `INSERT INTO channel_hidden_posts (channel_id, sequence)
  SELECT channel_id, target FROM ${table}
    WHERE channel_id = ? AND kind = 'edit' AND target = ? LIMIT 1
  ON CONFLICT (channel_id, sequence) DO NOTHING`;

/**
 * Removes edits of hidden posts of a channel, and the marks of posts that have none left.
 *
 * @param options.batchSize highest number of edits
 * @returns number of removed edits and marks
 */
export async function deleteHiddenEdits(
  tx: Writer,
  channelId: string,
  { sequences, batchSize }: { readonly sequences: readonly number[]; readonly batchSize: number },
): Promise<number> {
  let marks = 0;
  let left = batchSize;
  for (const target of sequences) {
    for (const table of eventTables) {
      left -= await deleteEdits(tx, channelId, { table, target, left });
    }
    if (left === 0) break;
    marks += await tx.run(
      'DELETE FROM channel_hidden_posts WHERE channel_id = ? AND sequence = ?',
      channelId,
      target,
    );
  }
  return batchSize - left + marks;
}

async function deleteEdits(
  tx: Writer,
  channelId: string,
  {
    table,
    target,
    left,
  }: {
    readonly table: EventTable;
    readonly target: number;
    readonly left: number;
  },
): Promise<number> {
  const edits = await tx.all<{ sequence: number }>(
    `SELECT sequence FROM ${table}
      WHERE channel_id = ? AND kind = 'edit' AND target = ? ORDER BY sequence LIMIT ?`,
    channelId,
    target,
    left,
  );
  const events: RemovedEvent[] = [];
  for (const chunk of chunks(
    edits.map(({ sequence }) => sequence),
    largeRows,
  )) {
    const those = `channel_id = ? AND sequence IN (${placeholders(chunk)})`;
    events.push(...(await removeEvents(tx, { table, those }, [channelId, ...chunk])));
  }
  await afterRemoval(tx, channelId, events);
  return events.length;
}

/** Removes deletions of a channel past the later of their two deadlines; returns how many. */
export async function deleteDeletions(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const chunk of chunks(sequences)) {
    const events = await tx.all<RemovedEvent>(
      `DELETE FROM channel_events
        WHERE channel_id = ? AND sequence IN (${placeholders(chunk)})
          AND kind = 'delete' AND clear_after <= ?
        RETURNING signer_device_id, bytes`,
      channelId,
      ...chunk,
      now,
    );
    await afterRemoval(tx, channelId, events);
    count += events.length;
  }
  return count;
}

/**
 * Removes superseded descriptors of a channel past their deadline, except those that an event still
 * needs: deadlines come from the clocks of several processes.
 *
 * @returns number of removed descriptors
 */
export async function deleteDescriptors(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const sequence of sequences) {
    if (await isNeeded(tx, channelId, sequence)) continue;
    const events = await tx.all<RemovedEvent>(
      `DELETE FROM channel_events
        WHERE channel_id = ? AND sequence = ? AND kind = 'descriptor' AND clear_after <= ?
        RETURNING signer_device_id, bytes`,
      channelId,
      sequence,
      now,
    );
    await afterRemoval(tx, channelId, events);
    count += events.length;
  }
  return count;
}

/** Tells whether a later event needs a descriptor: revisions grow, so only the next one can. */
async function isNeeded(tx: Reader, channelId: string, sequence: number): Promise<boolean> {
  const from = async (table: EventTable, first: number) => {
    const row = await tx.get<{ descriptor_rev: number }>(
      `SELECT descriptor_rev FROM ${table}
        WHERE channel_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1`,
      channelId,
      first,
    );
    return row?.descriptor_rev;
  };
  const revision = await from('channel_events', sequence);
  const next = [];
  for (const table of eventTables) next.push(await from(table, sequence + 1));
  return next.includes(revision);
}

/** An event that was removed. */
interface RemovedEvent extends Row {
  signer_device_id: string;
  bytes: number;
}

/**
 * Completes a removal of events: no longer counts them, and removes the certificates of those devices
 * that have no event left in the channel, readable or withheld (06 §5.2).
 */
export async function afterRemoval(
  tx: Writer,
  channelId: string,
  removed: readonly RemovedEvent[],
): Promise<void> {
  if (removed.length === 0) return;
  await freeBytes(
    tx,
    channelId,
    removed.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  for (const deviceId of new Set(removed.map((event) => event.signer_device_id))) {
    await tx.run(
      `DELETE FROM channel_certificates WHERE channel_id = ? AND device_id = ? AND NOT EXISTS
        (SELECT 1 FROM channel_events WHERE channel_id = ? AND signer_device_id = ?)
        AND NOT EXISTS
        (SELECT 1 FROM channel_withheld_events WHERE channel_id = ? AND signer_device_id = ?)`,
      ...Array.from({ length: 3 }, () => [channelId, deviceId]).flat(),
    );
  }
}

const nextDeadlineSql = `SELECT MIN(deadline) AS deadline FROM (
  SELECT MIN(clear_after) AS deadline FROM channel_posts WHERE clear_after > ?
  UNION ALL SELECT MIN(clear_after) FROM channel_events
    WHERE kind = 'delete' AND clear_after IS NOT NULL AND clear_after > ?
  UNION ALL SELECT MIN(clear_after) FROM channel_events
    WHERE kind = 'descriptor' AND clear_after IS NOT NULL AND clear_after > ?
  UNION ALL SELECT MIN(clear_after) FROM channel_reports WHERE clear_after > ?
) AS deadlines`;

/**
 * Returns the next deadline, or `undefined` if there is none.
 *
 * @param after deadlines up to this instant are ignored
 */
export async function nextRetentionDeadline(
  tx: Reader,
  after = Number.MIN_SAFE_INTEGER,
): Promise<number | undefined> {
  const values = [after, after, after, after];
  const row = await tx.get<{ deadline: number | null }>(nextDeadlineSql, ...values);
  return row?.deadline ?? undefined;
}
