/** Catching up the groups of one host: a group that fails does not delay the others. */
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { type CatchUpLimit, noTimeLimit, ReadBudget } from '../sync/budget.ts';
import type { HostVisit } from '../sync/host-visit.ts';
import { isDue, isolateFailure, rowsAtHost } from '../sync/hosted-rows.ts';
import { runToEnd } from '../sync/run-to-end.ts';
import type { SendWork } from '../sync/sender.ts';
import { type GroupRow, groupRow, groupRows } from './group-rows.ts';
import { removeSettledRecovery } from './keys/recover-key.ts';
import { submitApplication } from './membership/join-group.ts';
import { submitCreation } from './membership/submit-creation.ts';
import { needsPolling, readGroup, shouldReadGroup } from './timeline/read-group.ts';
import { flushOrGiveUp } from './timeline/send-group-message.ts';

/**
 * Reads the groups of one host, sends what is pending, and settles open requests.
 *
 * @param only reads these groups, and groups that need polling; all groups by default
 * @throws ClientError if the home relay does not answer; a failure of one group is an event
 */
export async function* catchUpGroups(
  core: AccountCore,
  visit: HostVisit,
  only: ReadonlySet<string> | undefined,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const rows = await core.store.read((tx) => groupRows(tx));
  for (const row of rowsAtHost(rows, visit.host)) {
    const { group_id: id } = row;
    // The host may have lost the end of an own group: to find that out costs no call.
    const isOwn = row.standing === 'member' && row.facts?.owner === core.account;
    const mayRead = shouldReadGroup(row) || isOwn;
    if (!mayRead || !isDue(row, only, { id, hasOpenWork: needsPolling(row) })) continue;
    const work = (row: GroupRow, limit: CatchUpLimit) =>
      isolateFailure<GroupAccountEvent>(
        { core, visit },
        () => catchUpRow(core, row, limit),
        (error) => ({ kind: 'group-failed', groupId: id, error }),
      );
    // A host that lets these calls wait delays nothing that arrives.
    if (visit.sendsInBackground && isAsking(row))
      core.sender.start(`asking/${id}`, ask(core, id, work));
    else yield* work(row, visit);
  }
}

/** Whether the host has not confirmed yet that the account is a member: it is asked each time. */
function isAsking({ standing }: GroupRow): boolean {
  return standing === 'creating' || standing === 'applied';
}

/** Returns the work that asks the host again, unless it has answered meanwhile. */
function ask(
  core: AccountCore,
  groupId: string,
  work: (row: GroupRow, limit: CatchUpLimit) => AsyncGenerator<readonly GroupAccountEvent[]>,
): SendWork {
  const latest = () => core.store.read((tx) => groupRow(tx, groupId));
  return async (signal) => {
    const row = await latest();
    if (row === undefined || !isAsking(row)) return;
    await runToEnd(core, work(row, noTimeLimit(signal)));
    if ((await latest())?.standing === 'member') core.wakeSignal.wake();
  };
}

async function* catchUpRow(
  core: AccountCore,
  row: GroupRow,
  visit: CatchUpLimit,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const { group_id: groupId, standing } = row;
  const { signal } = visit;
  if (standing === 'creating') await submitCreation(core, row, signal);
  if (standing === 'applied') await resubmit(core, row, signal);
  const hasMore = yield* catchUpGroup(core, groupId, visit);
  if (standing !== 'member' || hasMore) return;
  await removeSettledRecovery(core, groupId, signal).catch((error: unknown) => {
    const temporary = ['not_a_member', 'group_blocked', 'group_behind'] as const;
    if (!temporary.some((code) => isClientError(error, code))) throw error;
  });
}

/**
 * Reads one group and sends its pending messages.
 * @returns whether more is left to read
 */
export async function* catchUpGroup(
  core: AccountCore,
  groupId: string,
  { signal, isReached, sendsInBackground = false }: CatchUpLimit,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  const reading = { signal, budget: new ReadBudget(core.reading, isReached) };
  // Read first: the host refuses a message sealed for an epoch that is over.
  if (yield* readGroup(core, groupId, reading)) return true;
  // Read again, so that the timeline has the messages that were just sent.
  if (await flushOrGiveUp(core, groupId, { signal, sendsInBackground }))
    return yield* readGroup(core, groupId, reading);
  return false;
}

/** Repeats an application whose answer was lost. An account admitted meanwhile is refused. */
async function resubmit(core: AccountCore, row: GroupRow, signal: AbortSignal): Promise<void> {
  try {
    await submitApplication(core, row, signal);
  } catch (error) {
    if (!(error instanceof ClientError) || !isRefusal(error) || isTemporary(error)) throw error;
  }
}
