/**
 * Reading a group from its host: page by page, each verified from the creation event on before
 * anything of it counts, never more than one page at a time in memory (05 §5.4, §13.4, §17.2).
 */
import {
  advanceGroup,
  type GroupAdvance,
  type GroupMember,
  type GroupProjection,
  type VerifiedGroupPage,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkRelayAnswer, isRefusal, RelayMisbehaviour } from '../../errors.ts';
import type { GroupAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import { ReadBudget } from '../../sync/budget.ts';
import { bufferEvents } from '../../sync/collect-events.ts';
import { asRollback, callPage } from '../../sync/host-calls.ts';
import { markInterrupted } from '../../sync/hosted-rows.ts';
import {
  asEnded,
  type GroupFacts,
  type GroupRow,
  groupRow,
  groups,
  loadGroup,
  memberOf,
  putGroup,
  type StoredGroup,
} from '../group-rows.ts';
import { readKeys } from '../keys/read-keys.ts';
import { type AppliedGroupPage, applyGroupPage } from './apply-group-page.ts';
import { openUndecrypted } from './open-message.ts';

const method = 'group.sync';

/** Events asked for at once; the host may give fewer. */
const pageSize = 100;

/**
 * Whether reading a group is worth a call. Of a closed one only what could not be had before: its
 * end may be read long before the keys of what was said until then (05 §10.3, §11.3).
 */
export function shouldReadGroup(row: GroupRow): boolean {
  if (row.standing === 'ended') return false;
  return row.facts?.status !== 'closed' || needsPolling(row);
}

/** Whether something about a group is open that no hint will tell of. */
export function needsPolling({ standing, keysThrough, facts }: GroupRow): boolean {
  return standing !== 'member' || keysThrough < (facts?.epoch ?? 0);
}

/** What reading a group may take. */
export interface GroupReading {
  readonly signal: AbortSignal;
  readonly budget: ReadBudget;
}

/**
 * Catches a group up: events, then key material, then messages that waited for it. What one page
 * brings is committed with the position before the next is asked for. Gives what happened.
 *
 * @returns whether there is more than the allowance permitted to read
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; what was applied before stays
 */
export async function* readGroup(
  core: AccountCore,
  groupId: string,
  reading: GroupReading,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  // Twice: key material may be of an epoch whose event came after the last page.
  for (let round = 0; round < 2; round += 1) {
    const end = yield* readEvents(core, groupId, reading);
    if (end === 'stopped') return false;
    const isInterrupted = end === 'interrupted';
    if (!isInterrupted) await markMember(core, groupId);
    const keys = yield* readKeys(core, groupId, reading.signal);
    yield* openUndecrypted(core, groupId);
    if (isInterrupted) return true;
    if (!keys.isAhead) return false;
  }
  return false;
}

/** @returns `stopped` where nothing behind the position can be used, or is shown */
async function* readEvents(
  core: AccountCore,
  groupId: string,
  { signal, budget }: GroupReading,
): AsyncGenerator<readonly GroupAccountEvent[], 'complete' | 'interrupted' | 'stopped'> {
  const { store } = core;
  let kept = await store.read((tx) => loadGroup(tx, groupId));
  for (;;) {
    signal.throwIfAborted();
    const page = await readGroupPage(core, kept, signal);
    if (page === 'refused') {
      yield* await markExcluded(core, kept);
      return 'stopped';
    }
    budget.spendPage(page.events.length);
    const { group_id, relay_id } = kept.row;
    const led = advanceGroup(core.network, kept.group ?? { group_id, relay_id }, page);
    const step = await store.write((tx) => commitPage(core, tx, { row: kept.row, led }));
    if (step !== undefined) {
      kept = { row: step.row, group: led.group };
      yield step.events;
      if (step.row.blocked !== undefined) return 'stopped';
      if (!page.has_more) return 'complete';
      yield* openUndecrypted(core, groupId);
    }
    if (budget.isSpent) {
      await markInterrupted(core, groups, groupId);
      yield [{ kind: 'group-incomplete', groupId }];
      return 'interrupted';
    }
    // Another reader of this store was faster; its pages count.
    if (step === undefined) kept = await store.read((tx) => loadGroup(tx, groupId));
  }
}

/**
 * Catches up on the way to something else: whoever reads events is told later.
 * @throws ClientError `group_behind` where there is more than can be read on the way
 */
export async function refreshGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<void> {
  if (!(await readGroupBuffered(core, groupId, signal))) return;
  throw new ClientError('group_behind', `there is more of ${groupId} to read: synchronize first`);
}

/** The same after something that is done already. @returns whether there is more to read */
export async function readGroupBuffered(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const budget = new ReadBudget(core.reading);
  return await bufferEvents(core, readGroup(core, groupId, { signal, budget }));
}

/** A group whose verified state can be used. */
type VerifiedGroupRow = GroupRow & { readonly facts: GroupFacts };

/**
 * A group this account is a member of, its state verified and usable, without its members.
 * @throws ClientError `not_a_member`, `group_blocked`
 */
export async function requireGroupRow(
  core: AccountCore,
  groupId: string,
): Promise<VerifiedGroupRow> {
  return await core.store.read(async (tx) => {
    const row = await groupRow(tx, groupId);
    return requireVerified(row, { groupId, member: await memberOf(tx, groupId, core.account) });
  });
}

/**
 * The same with its members.
 * @throws ClientError `not_a_member`, `group_blocked`
 */
export async function requireGroup(
  core: AccountCore,
  groupId: string,
): Promise<{ readonly row: VerifiedGroupRow; readonly group: GroupProjection }> {
  return await core.store.read(async (tx) => {
    const { row, group } = await loadGroup(tx, groupId);
    const member = group?.members.get(core.account);
    return { row: requireVerified(row, { groupId, member }), group: group as GroupProjection };
  });
}

function requireVerified(
  row: GroupRow | undefined,
  { groupId, member }: { readonly groupId: string; readonly member: GroupMember | undefined },
): VerifiedGroupRow {
  if (row?.blocked !== undefined) {
    const { sequence, reason } = row.blocked;
    throw new ClientError('group_blocked', `event ${sequence} does not verify: ${reason}`);
  }
  if (row?.facts === undefined || member === undefined || row.standing === 'ended') {
    throw new ClientError('not_a_member', `the account is no member of ${groupId}`);
  }
  return { ...row, facts: row.facts };
}

/** @returns `refused` where the host lets this account read no events */
async function readGroupPage(
  core: AccountCore,
  { row, group }: StoredGroup,
  signal: AbortSignal,
): Promise<VerifiedGroupPage | 'refused'> {
  const params = { group_id: row.group_id, after: row.position, limit: pageSize };
  let answer: unknown;
  try {
    answer = await callPage(core, row.relay_id, { method, params, signal });
  } catch (error) {
    if (isRefusal(error, 'forbidden')) return 'refused';
    throw row.position < 0 ? error : asRollback(error, 'group_rollback', { method });
  }
  const page = checkRelayAnswer('invalid_group_page', method, () =>
    verifyGroupSyncPage(core.network, answer, params),
  );
  if (group === undefined && page.events.length === 0) {
    throw new RelayMisbehaviour('invalid_group_page', 'the creation event is missing', { method });
  }
  return page;
}

/** Writes what a verified page led to; nothing where it did not begin at the latest position. */
async function commitPage(
  core: AccountCore,
  tx: StoreWriter,
  page: { readonly row: GroupRow; readonly led: GroupAdvance },
): Promise<AppliedGroupPage | undefined> {
  const latest = await groupRow(tx, page.row.group_id);
  if (latest === undefined || latest.position !== page.row.position) return undefined;
  const { leftAt: _goesOn, ...row } = latest;
  return await applyGroupPage(core, tx, { row, advance: page.led });
}

/** The end of the chain says whether the account is a member. */
async function markMember(core: AccountCore, groupId: string): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await groupRow(tx, groupId);
    const member = await memberOf(tx, groupId, core.account);
    if (row === undefined || row.standing === 'member' || member === undefined) return;
    const { application: _done, ...rest } = row;
    await putGroup(tx, { ...rest, standing: 'member' });
  });
}

/**
 * The host reads to members only. What it says is no event of the chain and changes nothing of the
 * verified state; it is the reason to ask no more.
 */
async function markExcluded(
  core: AccountCore,
  { row: { group_id } }: StoredGroup,
): Promise<(readonly GroupAccountEvent[])[]> {
  return await core.store.write(async (tx) => {
    const row = await groupRow(tx, group_id);
    // Applicants are refused until they are admitted.
    if (row === undefined || (row.standing !== 'member' && row.standing !== 'known')) return [];
    await putGroup(tx, asEnded(row));
    return row.standing === 'member' ? [[{ kind: 'group-ended', groupId: group_id }]] : [];
  });
}
