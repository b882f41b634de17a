/** All SQL of invitations, recovery requests and staged rotations whose time is over. */
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import { dropSet } from '../chain/key-store.ts';
import { endOfInvite } from '../requests/invite-store.ts';

/** An invitation or a request, by what it is found with in its group. */
export interface Expired {
  readonly groupId: string;
  /** ID of the invitation, or account of the request. */
  readonly id: string;
}

/** With its deadline, in whose order they are found. */
export interface Due extends Expired {
  /** Unix seconds. */
  readonly deadline: number;
}

/** What is looked for: the deadlines up to now, behind the last one found. */
export interface DueRange {
  readonly now: number;
  readonly after: Due | undefined;
  readonly batchSize: number;
}

/** Values of a range in the order of the statements here. */
function valuesOf({ now, after, batchSize }: DueRange): [number, number, string, string, number] {
  const { deadline = Number.MIN_SAFE_INTEGER, groupId = '', id = '' } = after ?? {};
  return [now, deadline, groupId, id, batchSize];
}

/** Invitations that were not found expired yet. */
export async function readExpiredInvites(tx: Reader, range: DueRange): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", invite_id AS id, expires_at AS deadline FROM group_invites
      WHERE live = 1 AND expires_at <= ? AND (expires_at, group_id, invite_id) > (?, ?, ?)
      ORDER BY expires_at, group_id, invite_id LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Ends invitations of a group; says whether applications rested on one of them. */
export async function endInvites(
  tx: Writer,
  groupId: string,
  { inviteIds, now }: { readonly inviteIds: readonly string[]; readonly now: number },
): Promise<boolean> {
  let pending = 0;
  for (const some of chunks(inviteIds)) {
    const rows = await tx.all<{ pending: number }>(
      `UPDATE group_invites SET ${endOfInvite}
        WHERE group_id = ? AND invite_id IN (${placeholders(some)}) AND live = 1 AND expires_at <= ?
        RETURNING pending`,
      groupId,
      ...some,
      now,
    );
    for (const row of rows) pending += row.pending;
  }
  return pending > 0;
}

/** Invitations that are over while applications still rest on them. */
export async function readEndedInvites(
  tx: Reader,
  { after, batchSize }: Omit<DueRange, 'now'>,
): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", invite_id AS id, expires_at AS deadline FROM group_invites
      WHERE live = 0 AND pending > 0 AND (group_id, invite_id) > (?, ?)
      ORDER BY group_id, invite_id LIMIT ?`,
    after?.groupId ?? '',
    after?.id ?? '',
    batchSize,
  );
}

/** Removes applications that rest on an invitation that is over; says how many went. */
export async function deleteApplicationsOf(
  tx: Writer,
  { groupId, id }: Expired,
  batchSize: number,
): Promise<number> {
  const count = await tx.run(
    `DELETE FROM group_applications WHERE group_id = ? AND account IN
      (SELECT account FROM group_applications WHERE group_id = ? AND invite_id = ?
        ORDER BY account LIMIT ?)`,
    groupId,
    groupId,
    id,
    batchSize,
  );
  await tx.run(
    `UPDATE group_invites SET pending = CASE WHEN ? < ? THEN 0 ELSE pending - ? END
      WHERE group_id = ? AND invite_id = ?`,
    count,
    batchSize,
    count,
    groupId,
    id,
  );
  return count;
}

/** Forgets invitations that are over, for good, and expired by then; says how many went. */
export async function deleteEndedInvites(
  tx: Writer,
  before: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM group_invites WHERE (group_id, invite_id) IN
      (SELECT group_id, invite_id FROM group_invites
        WHERE live = 0 AND pending = 0 AND expires_at <= ? LIMIT ?)`,
    before,
    batchSize,
  );
}

/** Recovery requests that are over. */
export async function readExpiredRecoveries(tx: Reader, range: DueRange): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", account AS id, expires_at AS deadline FROM group_recoveries
      WHERE expires_at <= ? AND (expires_at, group_id, account) > (?, ?, ?)
      ORDER BY expires_at, group_id, account LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Removes requests of these accounts that are over; says whose they were. */
export async function deleteExpiredRecoveries(
  tx: Writer,
  groupId: string,
  { accounts, now }: { readonly accounts: readonly string[]; readonly now: number },
): Promise<string[]> {
  const gone: string[] = [];
  for (const some of chunks(accounts)) {
    const rows = await tx.all<{ account: string }>(
      `DELETE FROM group_recoveries
        WHERE group_id = ? AND account IN (${placeholders(some)}) AND expires_at <= ?
        RETURNING account`,
      groupId,
      ...some,
      now,
    );
    gone.push(...rows.map(({ account }) => account));
  }
  return gone;
}

/** Staged rotations that are over while their boxes are there (05 §13.26). */
export async function readExpiredStagings(
  tx: Reader,
  { now, after, batchSize }: DueRange,
): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", '' AS id, expires_at AS deadline FROM group_stagings
      WHERE cleared = 0 AND expires_at <= ? AND (expires_at, group_id) > (?, ?)
      ORDER BY expires_at, group_id LIMIT ?`,
    now,
    after?.deadline ?? Number.MIN_SAFE_INTEGER,
    after?.groupId ?? '',
    batchSize,
  );
}

/**
 * Gives up the boxes of a group's staged rotation if it is over. What it was stays known: it cannot
 * be begun again.
 */
export async function clearStaging(tx: Writer, groupId: string, now: number): Promise<void> {
  const row = await tx.get<{ box_set: number }>(
    `UPDATE group_stagings SET cleared = 1
      WHERE group_id = ? AND cleared = 0 AND expires_at <= ? RETURNING box_set`,
    groupId,
    now,
  );
  if (row !== undefined) await dropSet(tx, groupId, row.box_set);
}

/**
 * When the next invitation, request or staged rotation ends, or an invitation is to be forgotten. Whatever is overdue is not of
 * it: that was done just now, or is tried again when its time comes.
 *
 * @param options.forgetAfter seconds for which an invitation is kept behind its end
 */
export async function nextExpiry(
  tx: Reader,
  { now, forgetAfter }: { readonly now: number; readonly forgetAfter: number },
): Promise<number | undefined> {
  const row = await tx.get<{ deadline: number | null }>(
    `SELECT MIN(deadline) AS deadline FROM (
      SELECT MIN(expires_at) AS deadline FROM group_invites WHERE live = 1 AND expires_at > ?
      UNION ALL SELECT MIN(expires_at) + ? FROM group_invites WHERE live = 0 AND expires_at > ?
      UNION ALL SELECT MIN(expires_at) FROM group_recoveries WHERE expires_at > ?
      UNION ALL SELECT MIN(expires_at) FROM group_stagings WHERE cleared = 0 AND expires_at > ?
    ) AS deadlines`,
    now,
    forgetAfter,
    now - forgetAfter,
    now,
    now,
  );
  return row?.deadline ?? undefined;
}
