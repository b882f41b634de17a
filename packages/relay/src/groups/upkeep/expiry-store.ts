/** All SQL of invitations, recovery requests and staged rotations that have expired. */
import { chunks, largeRows, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import { dropSet } from '../chain/key-store.ts';
import { endOfInvite } from '../requests/invite-store.ts';
import { deleteRequests } from '../requests/request-store.ts';

/** The key of an invitation or a request. */
export interface Expired {
  readonly groupId: string;
  /** ID of the invitation, or account of the request. */
  readonly id: string;
}

/** An expired record with its deadline; they are read in the order of deadlines. */
export interface Due extends Expired {
  /** Unix seconds. */
  readonly deadline: number;
}

/** The range to read: deadlines up to now, after the last one found. */
export interface DueRange {
  readonly now: number;
  readonly after: Due | undefined;
  readonly batchSize: number;
}

/** Returns the values of a range in the order of the statements here. */
function valuesOf({ now, after, batchSize }: DueRange): [number, number, string, string, number] {
  const { deadline = Number.MIN_SAFE_INTEGER, groupId = '', id = '' } = after ?? {};
  return [now, deadline, groupId, id, batchSize];
}

/** Reads expired invitations that have not been ended yet. */
export async function readExpiredInvites(tx: Reader, range: DueRange): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", invite_id AS id, expires_at AS deadline FROM group_invites
      WHERE live = 1 AND expires_at <= ? AND (expires_at, group_id, invite_id) > (?, ?, ?)
      ORDER BY expires_at, group_id, invite_id LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Ends invitations of a group; returns whether one of them had pending applications. */
export async function endInvites(
  tx: Writer,
  groupId: string,
  { inviteIds, now }: { readonly inviteIds: readonly string[]; readonly now: number },
): Promise<boolean> {
  let pending = 0;
  for (const some of chunks(inviteIds, largeRows)) {
    const due = `group_id = ? AND invite_id IN (${placeholders(some)})
      AND live = 1 AND expires_at <= ?`;
    const row = await tx.get<{ pending: number | null }>(
      `SELECT CAST(SUM(pending) AS BIGINT) AS pending FROM group_invites WHERE ${due}`,
      ...[groupId, ...some, now],
    );
    await tx.run(`UPDATE group_invites SET ${endOfInvite} WHERE ${due}`, groupId, ...some, now);
    pending += row?.pending ?? 0;
  }
  return pending > 0;
}

/** Reads ended invitations with applications that are still stored. */
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

/** Deletes applications of an ended invitation; returns how many. */
export async function deleteApplicationsOf(
  tx: Writer,
  { groupId, id }: Expired,
  batchSize: number,
): Promise<number> {
  const rows = await tx.all<{ account: string }>(
    `SELECT account FROM group_applications WHERE group_id = ? AND invite_id = ?
      ORDER BY account LIMIT ?`,
    groupId,
    id,
    batchSize,
  );
  const accounts = rows.map(({ account }) => account);
  await deleteRequests(tx, { kind: 'application', groupId, accounts });
  const count = accounts.length;
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

/** Deletes ended invitations whose period ended by then; returns how many. */
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

/** Reads expired recovery requests. */
export async function readExpiredRecoveries(tx: Reader, range: DueRange): Promise<Due[]> {
  return await tx.all<Due & Row>(
    `SELECT group_id AS "groupId", account AS id, expires_at AS deadline FROM group_recoveries
      WHERE expires_at <= ? AND (expires_at, group_id, account) > (?, ?, ?)
      ORDER BY expires_at, group_id, account LIMIT ?`,
    ...valuesOf(range),
  );
}

/** Deletes the expired requests of accounts; returns the accounts that had one. */
export async function deleteExpiredRecoveries(
  tx: Writer,
  groupId: string,
  { accounts, now }: { readonly accounts: readonly string[]; readonly now: number },
): Promise<string[]> {
  const gone: string[] = [];
  for (const some of chunks(accounts)) {
    const rows = await tx.all<{ account: string }>(
      `SELECT account FROM group_recoveries
        WHERE group_id = ? AND account IN (${placeholders(some)}) AND expires_at <= ?`,
      groupId,
      ...some,
      now,
    );
    gone.push(...rows.map(({ account }) => account));
  }
  await deleteRequests(tx, { kind: 'recovery', groupId, accounts: gone });
  return gone;
}

/** Reads expired staged rotations whose boxes are still stored (05 §13.26). */
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
 * Drops the boxes of a group's staged rotation if it has expired. Its terms stay stored, because it
 * cannot be begun again.
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
 * Reads when the next invitation, request or staged rotation expires, or an invitation is to be
 * deleted. Overdue deadlines do not count: they were met just now, or are retried with a pause.
 *
 * @param options.forgetAfter seconds for which an invitation is stored after its end
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
