/** Groups whose host was put back to an earlier state: whether it still has the chain as verified (05 §5.6). */
import type { GroupEvent } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { callPage, groupRow, isRefusal, lastChange, putGroup } from '../../taken.ts';
import type { GroupRow } from '../group-rows.ts';
import type { GroupStop } from './apply-group-page.ts';

/** What the host said of its restore, and the end of the work. */
interface Restored {
  /** Unix seconds. */
  readonly restoredAt: number;
  readonly signal: AbortSignal;
}

/**
 * Finds out whether a host that was restored lost events of the chain. Nothing may be sent then: members
 * that were removed are members at the host again.
 *
 * @returns what blocks the group; `undefined` if it can be read
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour: it is tried again by the next read
 */
export async function lostChange(
  core: AccountCore,
  row: GroupRow,
  { restoredAt, signal }: Restored,
): Promise<GroupStop | undefined> {
  const event = await core.store.read((tx) => lastChange(tx, row.group_id));
  // For others than the owner, the end that they read is the end.
  const isFinal = row.facts?.status === 'closed' && row.facts.owner !== core.account;
  if (event && !isFinal && !(await hasChange(core, row, { ...event, signal }))) {
    const message = 'the host was restored and lost it; the owner can hand it back';
    return { event, error: { code: 'host_restored', message } };
  }
  await core.store.write(async (tx) => {
    const latest = await groupRow(tx, row.group_id);
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
