/** All SQL that removes what has been kept long enough (06 §7.5). Portions are the caller's. */
import { chunks, forEach, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { StoredPost } from './post-store.ts';

/** A position in a channel. */
export interface EventPosition {
  readonly channelId: string;
  readonly sequence: number;
}

/** One where something can go. */
export interface DueEvent extends EventPosition {
  /** Since when, Unix seconds. */
  readonly deadline: number;
}

/** What is looked for: the deadlines up to now, behind the last one found. */
export interface DueRange {
  readonly now: number;
  readonly after: DueEvent | undefined;
  readonly portion: number;
}

/** Values of a range in the order of the statements here. */
function valuesOf({ now, after, portion }: DueRange): [number, number, string, number, number] {
  const { deadline = Number.MIN_SAFE_INTEGER, channelId = '', sequence = -1 } = after ?? {};
  return [now, deadline, channelId, sequence, portion];
}

/** Posts whose row is not needed any more, the longest overdue first. */
export async function readDuePosts(tx: Reader, range: DueRange): Promise<DueEvent[]> {
  return await tx.all<DueEvent & Row>(
    `SELECT channel_id AS "channelId", sequence, clear_after AS deadline FROM channel_posts
      WHERE clear_after <= ? AND (clear_after, channel_id, sequence) > (?, ?, ?)
      ORDER BY clear_after, channel_id, sequence LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Deletions, or superseded descriptors, whose time is over, the longest overdue first. */
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

/** Posts that are hidden and may still have edits. */
export async function readHiddenPosts(
  tx: Reader,
  { after, portion }: DueRange,
): Promise<DueEvent[]> {
  return await tx.all<DueEvent & Row>(
    `SELECT channel_id AS "channelId", sequence, 0 AS deadline FROM channel_hidden_posts
      WHERE (channel_id, sequence) > (?, ?) ORDER BY channel_id, sequence LIMIT ?`,
    after?.channelId ?? '',
    after?.sequence ?? -1,
    portion,
  );
}

/**
 * Removes posts of a channel that are still due: the row, and of a readable one the event. From
 * then on its edits are unreadable; they are left to {@link deleteHiddenEdits}.
 *
 * @returns how many went
 */
export async function deletePosts(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const some of chunks(sequences)) {
    // A deletion that was accepted meanwhile may have given the row more time.
    const rows = await tx.all<RemovedPost>(
      `DELETE FROM channel_posts
        WHERE channel_id = ? AND sequence IN (${placeholders(some)}) AND clear_after <= ?
        RETURNING sequence, withheld_at`,
      channelId,
      ...some,
      now,
    );
    count += rows.length;
    await dropCertificates(tx, channelId, await deletePostEvents(tx, channelId, rows));
  }
  return count;
}

/** A post that is readable no more, and whether the operator had withheld it. */
type RemovedPost = Pick<StoredPost, 'sequence' | 'withheld_at'>;

/** Where posts and edits are: in the timeline, or withheld from it. */
const eventTables = ['channel_events', 'channel_withheld_events'] as const;
type EventTable = (typeof eventTables)[number];

/**
 * Removes the events of posts, and notes those that have edits, for {@link deleteHiddenEdits}; says
 * whose the events were.
 */
export async function deletePostEvents(
  tx: Writer,
  channelId: string,
  posts: readonly RemovedPost[],
): Promise<readonly SignerRow[]> {
  const events: SignerRow[] = [];
  for (const place of eventTables) {
    const there = place === 'channel_events' ? posts : posts.filter((post) => post.withheld_at);
    await forEach(there, ({ sequence }) => tx.run(hideEditedSql(place), channelId, sequence));
    for (const some of chunks(there.map(({ sequence }) => sequence))) {
      const rows = await tx.all<SignerRow>(
        `DELETE FROM ${place}
          WHERE channel_id = ? AND sequence IN (${placeholders(some)}) AND kind = 'post'
          RETURNING signer_device_id`,
        channelId,
        ...some,
      );
      events.push(...rows);
    }
  }
  return events;
}

const hideEditedSql = (
  place: EventTable,
) => `INSERT INTO channel_hidden_posts (channel_id, sequence)
  SELECT channel_id, target FROM ${place}
    WHERE channel_id = ? AND kind = 'edit' AND target = ? LIMIT 1
  ON CONFLICT (channel_id, sequence) DO NOTHING`;

/**
 * Removes edits of hidden posts of a channel, and forgets the posts that have none left.
 *
 * @param portion edits at the most
 * @returns how many edits and notes of posts went
 */
export async function deleteHiddenEdits(
  tx: Writer,
  channelId: string,
  { sequences, portion }: { readonly sequences: readonly number[]; readonly portion: number },
): Promise<number> {
  let forgotten = 0;
  let left = portion;
  for (const target of sequences) {
    for (const place of eventTables)
      left -= await deleteEdits(tx, channelId, { place, target, left });
    if (left === 0) break;
    forgotten += await tx.run(
      'DELETE FROM channel_hidden_posts WHERE channel_id = ? AND sequence = ?',
      channelId,
      target,
    );
  }
  return portion - left + forgotten;
}

async function deleteEdits(
  tx: Writer,
  channelId: string,
  {
    place,
    target,
    left,
  }: {
    readonly place: EventTable;
    readonly target: number;
    readonly left: number;
  },
): Promise<number> {
  const events = await tx.all<SignerRow>(
    `DELETE FROM ${place} WHERE channel_id = ? AND sequence IN
      (SELECT sequence FROM ${place}
        WHERE channel_id = ? AND kind = 'edit' AND target = ? ORDER BY sequence LIMIT ?)
      RETURNING signer_device_id`,
    channelId,
    channelId,
    target,
    left,
  );
  await dropCertificates(tx, channelId, events);
  return events.length;
}

/** Removes deletions of a channel whose deadline, the later of two, is over; says how many. */
export async function deleteDeletions(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const some of chunks(sequences)) {
    const events = await tx.all<SignerRow>(
      `DELETE FROM channel_events
        WHERE channel_id = ? AND sequence IN (${placeholders(some)})
          AND kind = 'delete' AND clear_after <= ?
        RETURNING signer_device_id`,
      channelId,
      ...some,
      now,
    );
    await dropCertificates(tx, channelId, events);
    count += events.length;
  }
  return count;
}

/**
 * Removes superseded descriptors of a channel whose time is over, but none that an event still
 * needs: the deadline says so already, by the clocks of several processes.
 *
 * @returns how many went
 */
export async function deleteDescriptors(
  tx: Writer,
  channelId: string,
  { sequences, now }: { readonly sequences: readonly number[]; readonly now: number },
): Promise<number> {
  let count = 0;
  for (const sequence of sequences) {
    if (await isNeeded(tx, channelId, sequence)) continue;
    const events = await tx.all<SignerRow>(
      `DELETE FROM channel_events
        WHERE channel_id = ? AND sequence = ? AND kind = 'descriptor' AND clear_after <= ?
        RETURNING signer_device_id`,
      channelId,
      sequence,
      now,
    );
    await dropCertificates(tx, channelId, events);
    count += events.length;
  }
  return count;
}

/** Revisions grow with sequences: what needs a descriptor comes next behind it, or does not exist. */
async function isNeeded(tx: Reader, channelId: string, sequence: number): Promise<boolean> {
  const from = async (place: EventTable, first: number) => {
    const row = await tx.get<{ descriptor_rev: number }>(
      `SELECT descriptor_rev FROM ${place}
        WHERE channel_id = ? AND sequence >= ? ORDER BY sequence LIMIT 1`,
      channelId,
      first,
    );
    return row?.descriptor_rev;
  };
  const revision = await from('channel_events', sequence);
  const next = [];
  for (const place of eventTables) next.push(await from(place, sequence + 1));
  return next.includes(revision);
}

interface SignerRow extends Row {
  signer_device_id: string;
}

/**
 * Removes the certificates of these devices that have no event left in the channel (06 §5.2), none
 * that is withheld either.
 */
export async function dropCertificates(
  tx: Writer,
  channelId: string,
  signers: readonly { readonly signer_device_id: string }[],
): Promise<void> {
  for (const deviceId of new Set(signers.map((signer) => signer.signer_device_id))) {
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
 * When something has to be removed next, or `undefined` where nothing is kept for a time.
 * @param behind what is due by then is left out
 */
export async function nextRetentionDeadline(
  tx: Reader,
  behind = Number.MIN_SAFE_INTEGER,
): Promise<number | undefined> {
  const values = [behind, behind, behind, behind];
  const row = await tx.get<{ deadline: number | null }>(nextDeadlineSql, ...values);
  return row?.deadline ?? undefined;
}
