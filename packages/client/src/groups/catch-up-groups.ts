/** Catching up the groups of one host, each on its own: one that fails holds up no other. */

import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { byLastInterrupted, ReadBudget, type TimeLimit } from '../sync/budget.ts';
import type { HostVisit } from '../sync/host-visit.ts';
import { type GroupRow, groupRows } from './group-rows.ts';
import { removeSettledRecovery } from './keys/recover-key.ts';
import { submitCreation } from './membership/create-group.ts';
import { submitApplication } from './membership/join-group.ts';
import { needsPolling, readGroup, shouldReadGroup } from './timeline/read-group.ts';
import { flushOrGiveUp } from './timeline/send-group-message.ts';

/**
 * Reads the groups of one host, sends what waits, and settles what is open.
 *
 * @param only only these, and those with something unsettled; what was left with more to read has
 *   its turn when everything is read, whatever hints its host gives
 * @throws ClientError where the home relay answers nothing; what fails for one group is an event
 */
export async function* catchUpGroups(
  core: AccountCore,
  visit: HostVisit,
  only: ReadonlySet<string> | undefined,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const rows = await core.store.read((tx) => groupRows(tx));
  const hosted = rows.filter(({ relay_id }) => relay_id === visit.host);
  for (const row of hosted.sort(byLastInterrupted)) {
    const { group_id } = row;
    if (!shouldReadGroup(row)) {
      yield* flushOrGiveUp(core, group_id, visit.signal);
      continue;
    }
    const isWanted = only?.has(group_id) !== false || needsPolling(row);
    if (!isWanted || (only !== undefined && row.leftAt !== undefined)) continue;
    try {
      visit.throwIfUnavailable();
      yield* catchUpRow(core, row, visit);
    } catch (error) {
      yield [{ kind: 'group-failed', groupId: group_id, error: visit.failureOf(error) }];
    }
  }
}

async function* catchUpRow(
  core: AccountCore,
  row: GroupRow,
  visit: TimeLimit,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const { group_id: groupId, standing } = row;
  const { signal } = visit;
  if (standing === 'creating') await submitCreation(core, row, signal);
  if (standing === 'applied') await resubmit(core, row, signal);
  const isBehind = yield* catchUpGroup(core, groupId, visit);
  if (standing !== 'member' || isBehind) return;
  await removeSettledRecovery(core, groupId, signal).catch((error: unknown) => {
    const passing = ['not_a_member', 'group_blocked', 'group_behind'] as const;
    if (!passing.some((code) => isClientError(error, code))) throw error;
  });
}

/**
 * Reads one group, and sends what waits for it.
 * @returns whether there is more to read
 */
export async function* catchUpGroup(
  core: AccountCore,
  groupId: string,
  { signal, isReached }: TimeLimit,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  const allowance = new ReadBudget(core.reading, isReached);
  const reading = { signal, allowance };
  // What was written for an epoch that is over would be refused.
  if (yield* readGroup(core, groupId, reading)) return true;
  // Whoever shows the group next shows what went out just now.
  if (yield* flushOrGiveUp(core, groupId, signal)) return yield* readGroup(core, groupId, reading);
  return false;
}

/** An application whose answer was lost; admitted meanwhile, it is refused as a member's. */
async function resubmit(core: AccountCore, row: GroupRow, signal: AbortSignal): Promise<void> {
  try {
    await submitApplication(core, row, signal);
  } catch (error) {
    if (!(error instanceof ClientError) || !isRefusal(error) || isTemporary(error)) throw error;
  }
}
