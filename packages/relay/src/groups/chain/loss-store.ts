/** All SQL of what a group lost when its host was put back to an earlier state (05 §5.6). */
import type { RelayContext } from '../../context.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import type { StoredGroup } from './group-store.ts';

/** For how long a loss can be handed back, seconds. */
const handBackTime = 30 * 86_400;

/** For how long a group waits for its owner, seconds. */
const ownerTime = 7 * 86_400;

/** Of that, for how long one device of the owner does not speak for the others, seconds. */
const devicesTime = 86_400;

/** What one restore lost of a group: every sequence and epoch between the two ends, both excluded. */
export interface Loss {
  /** The last sequence and epoch of the state to which the host was put back. */
  readonly after: number;
  readonly afterEpoch: number;
  /** What the restore gave to the event that it appended. */
  readonly end: number;
  readonly endEpoch: number;
}

/**
 * Notes for each active group what a restore loses of it, and that it waits for its owner. Call it
 * before sequences and epochs grow.
 *
 * @param restore `now` in Unix seconds, and the step by which they grow
 */
export async function insertLosses(
  tx: Writer,
  { now, step }: { readonly now: number; readonly step: number },
): Promise<void> {
  const last = Number.MAX_SAFE_INTEGER - step;
  const endsAt = now + handBackTime;
  await tx.run('DELETE FROM group_losses WHERE ends_at <= ?', now);
  await tx.run(
    `INSERT INTO group_losses (group_id, lost_after, lost_epoch, lost_end, ends_at)
      SELECT group_id, sequence, epoch, sequence + ?, CAST(? AS BIGINT) FROM groups
        WHERE status = 'active' AND sequence <= ? AND epoch <= ?`,
    ...[step, endsAt, last, last],
  );
  await tx.run(
    `UPDATE groups SET losses_end_at = ?, held_until = ?
      WHERE status = 'active' AND sequence <= ? AND epoch <= ?`,
    ...[endsAt, now + ownerTime, last, last],
  );
}

/** Reads what can be handed back of a group, in the order of its sequences. */
export async function readLosses(
  tx: Reader,
  groupId: string,
  { now }: { readonly now: number },
): Promise<Loss[]> {
  const rows = await tx.all<Row & Record<'lost_after' | 'lost_epoch' | 'lost_end', number>>(
    `SELECT lost_after, lost_epoch, lost_end FROM group_losses
      WHERE group_id = ? AND ends_at > ? ORDER BY lost_after`,
    groupId,
    now,
  );
  return rows.map(({ lost_after: after, lost_epoch: afterEpoch, lost_end: end }) => ({
    ...{ after, afterEpoch, end },
    endEpoch: afterEpoch + end - after,
  }));
}

/**
 * Tells the operator if a member asks for one event among those that a restore lost: a client does so for
 * the last event of the chain that it verified, and for no message (05 §5.6).
 */
export async function noticeLoss(
  { clock, restoreLosses }: Pick<RelayContext, 'clock' | 'restoreLosses'>,
  tx: Reader,
  { group, after }: { readonly group: StoredGroup; readonly after: number },
): Promise<void> {
  const now = clock.now();
  if (group.losses_end_at === null || group.losses_end_at <= now) return;
  const losses = await readLosses(tx, group.group_id, { now });
  if (isLost(losses, after + 1)) restoreLosses.note('group', group.group_id);
}

/** Whether a sequence is among those that restores lost. */
export function isLost(losses: readonly Loss[], sequence: number): boolean {
  return losses.some((loss) => sequence > loss.after && sequence < loss.end);
}

/**
 * Whether a group has waited long enough for devices of the owner that were away: any of them may end
 * the waiting now.
 */
export function hasWaitedForDevices(heldUntil: number, now: number): boolean {
  return heldUntil - now <= ownerTime - devicesTime;
}

/** Reads which devices of the owner read on, and whether each knows of an event that was lost. */
export async function readOwnerReads(
  tx: Reader,
  groupId: string,
): Promise<ReadonlyMap<string, boolean>> {
  const rows = await tx.all<{ device_id: string; knows_loss: number }>(
    'SELECT device_id, knows_loss FROM group_owner_reads WHERE group_id = ?',
    groupId,
  );
  return new Map(rows.map((row) => [row.device_id, row.knows_loss === 1]));
}

/** Stores that a device of the owner read on, or that it knows of an event that was lost. */
export async function putOwnerRead(
  tx: Writer,
  groupId: string,
  { deviceId, knowsLoss }: { readonly deviceId: string; readonly knowsLoss: boolean },
): Promise<void> {
  await tx.run(
    `INSERT INTO group_owner_reads (group_id, device_id, knows_loss) VALUES (?, ?, ?)
      ON CONFLICT (group_id, device_id) DO UPDATE SET knows_loss = excluded.knows_loss`,
    groupId,
    deviceId,
    knowsLoss ? 1 : 0,
  );
}

/** Forgets what the owner's devices know: the group waits no more. */
export async function deleteOwnerReads(tx: Writer, groupId: string): Promise<void> {
  await tx.run('DELETE FROM group_owner_reads WHERE group_id = ?', groupId);
}

/** Forgets what was lost of a group: its chain went on. */
export async function deleteLosses(tx: Writer, groupId: string): Promise<void> {
  await tx.run('DELETE FROM group_losses WHERE group_id = ?', groupId);
  await deleteOwnerReads(tx, groupId);
}
