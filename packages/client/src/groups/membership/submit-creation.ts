import type { AccountCore } from '../../core.ts';
import { isRefusal } from '../../errors.ts';
import { type GroupRow, putGroup } from '../group-rows.ts';

/** Submits a creation, unchanged in a repeat after a lost answer. */
export async function submitCreation(
  core: AccountCore,
  row: GroupRow,
  signal: AbortSignal,
): Promise<void> {
  if (row.creation === undefined) return;
  try {
    await core.relay(row.relay_id).call('group.create', row.creation, { signal });
  } catch (error) {
    // The ID is taken by this creation: reading the group confirms it.
    if (isRefusal(error, 'state_conflict')) return;
    const isFinal = isRefusal(error, 'bad_request', 'forbidden', 'invalid_signature');
    if (isFinal) await core.store.write((tx) => putGroup(tx, abandoned(row)));
    throw error;
  }
}

/** Returns the row of a refused creation; its keys stay in case an earlier attempt took effect. */
function abandoned({ creation: _refused, ...row }: GroupRow): GroupRow {
  return { ...row, standing: 'ended', isForgotten: true };
}
