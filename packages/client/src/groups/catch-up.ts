/** Catching up all groups, each on its own: one host that fails holds up no other (05 §17.1). */
import { isTemporary } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { isSilence } from '../hosted.ts';
import { submitCreation } from './found.ts';
import { submitApplication } from './join.ts';
import { settleOutbox } from './outbox.ts';
import { settleRecovery } from './recovery.ts';
import { type GroupRow, groupRows } from './rows.ts';
import { isReadable, isUnsettled, readGroup } from './sync.ts';

/** Which groups are caught up. */
export interface GroupScope {
  /** Only those of this host. */
  readonly host?: string | undefined;
  /** Only these, and those with something unsettled. */
  readonly only?: ReadonlySet<string> | undefined;
  /** Hosts that did not answer just now, which are not asked again for each of their groups. */
  readonly silent: Map<string, ClientError>;
}

/**
 * Reads groups, sends what waits, and settles what is open.
 * @throws ClientError where the home relay answers nothing; what fails for one group is an event
 */
export async function* catchUpGroups(
  core: AccountCore,
  signal: AbortSignal,
  { host, only, silent }: GroupScope,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const { relayId: homeId } = await core.home();
  for (const row of await rowsOf(core, { host, homeId })) {
    const { group_id, relay_id } = row;
    if (!isReadable(row)) {
      yield* settleOutbox(core, group_id, signal);
      continue;
    }
    if (only?.has(group_id) === false && !isUnsettled(row)) continue;
    try {
      const error = silent.get(relay_id);
      if (error !== undefined) throw error;
      yield* catchUpGroup(core, row, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
      if (isSilence(error)) {
        if (relay_id === homeId) throw error;
        silent.set(relay_id, error);
      }
      yield [{ kind: 'group-failed', group_id, error }];
    }
  }
}

/** Those at home first: other hosts may let them wait. */
async function rowsOf(
  core: AccountCore,
  { host, homeId }: { readonly host: string | undefined; readonly homeId: string },
): Promise<GroupRow[]> {
  const rows = await core.store.read((tx) => groupRows(tx));
  const wanted = rows.filter((row) => host === undefined || row.relay_id === host);
  const away = (row: GroupRow) => Number(row.relay_id !== homeId);
  return wanted.sort((a, b) => away(a) - away(b));
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
  // Whoever shows the group next shows what went out just now.
  if (yield* settleOutbox(core, groupId, signal)) yield* readGroup(core, groupId, signal);
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
