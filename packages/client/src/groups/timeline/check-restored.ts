/** A host that was put back to an earlier state: whether it still has the chain as verified (05 §5.6). */
import { type GroupAdvance, type GroupEvent, ProtocolError } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { isRefusal } from '../../errors.ts';
import { callPage } from '../../sync/host-calls.ts';
import { restoredAtOf } from '../../sync/reach-relay.ts';
import { type GroupRow, groupRow, putGroup } from '../group-rows.ts';
import { lastChange } from './group-entries.ts';

/**
 * Finds out whether a host that was restored lost events of the chain. Nothing may be sent then: members
 * that were removed are members at the host again.
 *
 * @returns what blocks the group; `undefined` if it can be read
 */
export async function lostChange(
  core: AccountCore,
  { group_id, relay_id, ...row }: GroupRow,
  signal: AbortSignal,
): Promise<GroupAdvance['blocked']> {
  const restoredAt = await restoredAtOf(core, relay_id, signal);
  if (restoredAt === (row.restoredAt ?? 0)) return undefined;
  const last = await core.store.read((tx) => lastChange(tx, group_id));
  if (last && !(await hasChange(core, { group_id, relay_id }, { ...last, signal }))) {
    const reason = 'the host was restored and lost it; the owner can hand it back';
    const { sequence } = last;
    return {
      event: { sequence } as GroupEvent,
      error: new ProtocolError('state_conflict', reason),
    };
  }
  await core.store.write(async (tx) => {
    const latest = await groupRow(tx, group_id);
    if (latest) await putGroup(tx, { ...latest, restoredAt });
  });
  return undefined;
}

/** Whether the host has a change at its sequence. A host that refuses has not. */
export async function hasChange(
  core: AccountCore,
  { group_id, relay_id }: Pick<GroupRow, 'group_id' | 'relay_id'>,
  {
    sequence,
    signature,
    signal,
  }: { readonly sequence: number; readonly signature?: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const params = { group_id, after: sequence - 1, limit: 1 };
  try {
    const page = await callPage(core, relay_id, { method: 'group.sync', params, signal });
    const [event] = page.events as readonly (GroupEvent & {
      readonly payload: { readonly device_signature?: string };
    })[];
    return event?.sequence === sequence && event.payload.device_signature === signature;
  } catch (error) {
    if (isRefusal(error, 'forbidden')) return false;
    throw error;
  }
}
