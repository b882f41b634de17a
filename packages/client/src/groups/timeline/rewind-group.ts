/** Reading groups again after their host was put back to an earlier state (05 §12.8). */
import { lowerMarks } from '../../conversations/conversation-rows.ts';
import type { StoreWriter } from '../../store/index.ts';
import { type GroupRow, groupRow, groupRows, putGroup } from '../group-rows.ts';
import { lastChange } from './group-entries.ts';

/**
 * Moves the position back to the last change of the state, so that messages to which the host gave
 * the lost sequences are read. Lost changes cannot be mended here: only their signers have them.
 *
 * @returns whether there is something to read again
 */
export async function rewindGroup(tx: StoreWriter, from: GroupRow): Promise<boolean> {
  const row = await groupRow(tx, from.group_id);
  // Another reader of this store may have moved the position.
  if (row?.facts === undefined || row.position !== from.position) return false;
  const change = await lastChange(tx, row.group_id);
  if (change === undefined || change.sequence >= row.position) return false;
  const { sequence: position, epoch } = change;
  const facts = { ...row.facts, sequence: position, epoch };
  await putGroup(tx, { ...row, position, facts, rollback: true });
  await lowerMarks(tx, { kind: 'group', id: row.group_id }, position);
  return true;
}

/** Rewinds every group of a host. */
export async function rewindGroupsOf(tx: StoreWriter, relayId: string): Promise<void> {
  for (const row of await groupRows(tx)) {
    if (row.relay_id === relayId) await rewindGroup(tx, row);
  }
}
