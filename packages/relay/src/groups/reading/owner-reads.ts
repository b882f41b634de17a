/** When a restored host has waited long enough for the owner of a group (05 §5.6). */
import type { Reader, Writer } from '../../storage/types.ts';
import { readOpenDevices } from '../chain/access-store.ts';
import { type StoredGroup, updateGroup } from '../chain/group-store.ts';
import {
  deleteOwnerReads,
  hasWaitedForDevices,
  isLost,
  putOwnerRead,
  readLosses,
  readOwnerReads,
} from '../chain/loss-store.ts';
import type { GroupReader } from './read-access.ts';

/** What a device asks for. */
interface OwnerRead {
  readonly after: number;
  readonly limit: number | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Returns what a read tells a restored host that waits for the owner of the group. A device of the owner
 * that knows of no more changes reads on after the event of the restore; one that knows of a lost one asks
 * for it. A device that was away knows of none, so the waiting ends when all devices of the owner that have
 * access read on, or a day after the restore, and before its time only if none of them knows of a loss.
 *
 * @returns what to write for it; `undefined` if nothing
 */
export async function whatOwnerSays(
  tx: Reader,
  { caller, group: { stored } }: GroupReader,
  { after, limit, now }: OwnerRead,
): Promise<((writer: Writer) => Promise<void>) | undefined> {
  const { account, deviceId } = caller;
  const { group_id: groupId, held_until: heldUntil, owner } = stored;
  if (heldUntil === null || heldUntil <= now || owner !== account) return undefined;
  const losses = await readLosses(tx, groupId, { now: 0 });
  const known = await readOwnerReads(tx, groupId);
  const put = (knowsLoss: boolean) => (writer: Writer) =>
    putOwnerRead(writer, groupId, { deviceId, knowsLoss });
  if (limit === 1 && isLost(losses, after + 1)) {
    return known.get(deviceId) === true ? undefined : put(true);
  }
  if (after < (losses.at(-1)?.end ?? 0) || [...known.values()].includes(true)) return undefined;
  const devices = await readOpenDevices(tx, groupId, [account]);
  const haveAllRead = devices.every(
    (each) => each.deviceId === deviceId || known.has(each.deviceId),
  );
  if (haveAllRead || hasWaitedForDevices(heldUntil, now))
    return (writer) => endWaiting(writer, stored);
  return known.has(deviceId) ? undefined : put(false);
}

/** Ends the waiting. Other devices of the owner may know more, and still can hand back. */
async function endWaiting(tx: Writer, group: StoredGroup): Promise<void> {
  await deleteOwnerReads(tx, group.group_id);
  await updateGroup(tx, { ...group, held_until: null }, 0);
}
