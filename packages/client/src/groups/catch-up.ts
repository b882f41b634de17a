/** Catching up all groups, each on its own: one host that fails holds up no other (05 §17.1). */
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { submitCreation } from './found.ts';
import { submitApplication } from './join.ts';
import { settleOutbox } from './outbox.ts';
import { settleRecovery } from './recovery.ts';
import { type GroupRow, groupRows } from './rows.ts';
import { isReadable, readGroup } from './sync.ts';

/**
 * Reads groups, sends what waits, and settles what is open.
 *
 * @param only these groups, and those with something unsettled; all by default
 * @throws ClientError where the home relay cannot be reached; what fails for one group is an event
 */
export async function* catchUpGroups(
  core: AccountCore,
  signal: AbortSignal,
  only?: ReadonlySet<string>,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const rows = await core.store.read((tx) => groupRows(tx));
  for (const row of rows) {
    if (!isReadable(row)) {
      yield* settleOutbox(core, row.group_id, signal);
      continue;
    }
    if (only?.has(row.group_id) === false && !isOpen(row)) continue;
    try {
      yield* catchUpGroup(core, row, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
      if (isTemporary(error) && row.relay_id === (await core.home()).relayId) throw error;
      yield [{ kind: 'group-failed', group_id: row.group_id, error }];
    }
  }
}

/** Whether something about a group is unsettled that no hint will tell of. */
function isOpen({ standing, keysThrough, facts }: GroupRow): boolean {
  return standing !== 'member' || keysThrough < (facts?.epoch ?? 0);
}

async function* catchUpGroup(
  core: AccountCore,
  row: GroupRow,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const { group_id: groupId, standing } = row;
  if (standing === 'creating') await submitCreation(core, row, signal);
  if (standing === 'applied') await resubmit(core, row, signal);
  yield* readGroup(core, groupId, signal);
  yield* settleOutbox(core, groupId, signal);
  if (standing !== 'member') return;
  await settleRecovery(core, groupId, signal).catch((error: unknown) => {
    if (!isClientError(error, 'not_a_member') && !isClientError(error, 'group_blocked'))
      throw error;
  });
}

/** An application whose answer was lost; admitted meanwhile, it is refused as a member's. */
async function resubmit(core: AccountCore, row: GroupRow, signal: AbortSignal): Promise<void> {
  try {
    await submitApplication(core, row, signal);
  } catch (error) {
    if (!(error instanceof ClientError) || !isRefusal(error) || isTemporary(error)) throw error;
  }
}
