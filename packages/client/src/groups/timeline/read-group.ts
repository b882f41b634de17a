/**
 * Reading a group from its host page by page. Each page is verified against the state before it,
 * and committed before the next one is requested (05 §5.4, §13.4, §17.2).
 */
import {
  type GroupMember,
  type GroupProjection,
  type VerifiedGroupPage,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { openConversation } from '../../conversations/conversation-rows.ts';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkRelayAnswer, isRefusal, RelayMisbehaviour } from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import type { GroupAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import { ReadBudget } from '../../sync/budget.ts';
import { asRollback, callPage } from '../../sync/host-calls.ts';
import { markInterrupted } from '../../sync/hosted-rows.ts';
import { restoredAtOf } from '../../sync/reach-relay.ts';
import { runToEnd } from '../../sync/run-to-end.ts';
import { checkSteps } from '../../sync/sequence-step.ts';
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
import { advanceInTurns } from './advance-in-turns.ts';
import { type AppliedGroupPage, applyGroupPage } from './apply-group-page.ts';
import { openUndecrypted } from './open-message.ts';
import { rewindGroup } from './rewind-group.ts';

const method = 'group.sync';

/** Events per request; the host may return fewer. */
const pageSize = 100;

/**
 * Whether a sync reads the group. A closed group is read until nothing is missing: its end may be
 * read long before the keys of its last messages (05 §10.3, §11.3).
 */
export function shouldReadGroup(row: GroupRow): boolean {
  if (row.standing === 'ended') return false;
  return row.facts?.status !== 'closed' || needsPolling(row);
}

/** Whether the group waits for something that no hint announces. */
export function needsPolling({ standing, keysThrough, facts }: GroupRow): boolean {
  return standing !== 'member' || keysThrough < (facts?.epoch ?? 0);
}

/** Limits of reading a group. */
export interface GroupReading {
  readonly signal: AbortSignal;
  readonly budget: ReadBudget;
}

/**
 * Catches a group up: events, then key material, then undecrypted messages. Yields what happened.
 *
 * @returns whether the budget ended before the timeline
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; applied pages stay
 */
export async function* readGroup(
  core: AccountCore,
  groupId: string,
  reading: GroupReading,
): AsyncGenerator<readonly GroupAccountEvent[], boolean> {
  // Twice: key material may belong to an epoch whose event came after the last page.
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

/** @returns `stopped` if no later event can be read or applied */
async function* readEvents(
  core: AccountCore,
  groupId: string,
  { signal, budget }: GroupReading,
  again = 0,
): AsyncGenerator<readonly GroupAccountEvent[], 'complete' | 'interrupted' | 'stopped'> {
  const { store } = core;
  let stored = await store.read((tx) => loadGroup(tx, groupId));
  let wentBack = false;
  const restoredAt = await restoredAtOf(core, stored.row.relay_id, signal);
  const isKnown = restoredAt === (stored.row.restoredAt ?? 0);
  const restored = isKnown ? undefined : await core.later();
  const blocked = await restored?.lostChange(core, stored.row, { restoredAt, signal });
  if (blocked) {
    const { row } = stored;
    const page = { row, advance: { group: undefined, outcomes: [], blocked }, signers: new Map() };
    const step = await store.write((tx) => commitPage(core, tx, page));
    if (step !== undefined) yield step.events;
    return 'stopped';
  }
  // Nothing follows the end of a group, but what a host appends that lost it (05 §5.6).
  if (stored.row.facts?.status === 'closed') return 'complete';
  for (;;) {
    signal.throwIfAborted();
    const page = await readGroupPage(core, stored, { signal, wentBack });
    if (page === 'refused') {
      yield* await markExcluded(core, stored);
      return 'stopped';
    }
    const { row, group = row } = stored;
    // Over HTTPS, the session of before a restore ends with the page's call, after the check above.
    if ((await restoredAtOf(core, row.relay_id, signal)) !== restoredAt) {
      if (again > 1) throw new RelayMisbehaviour('group_rollback', 'restored again and again');
      return yield* readEvents(core, groupId, { signal, budget }, again + 1);
    }
    const isPage = page !== 'rollback';
    if (isPage) budget.spendPage(page.events.length);
    const advance = isPage ? await advanceInTurns(core.network, group, page) : undefined;
    // After a restore, the owner may have handed lost events back before the position (05 §5.6).
    if (!(isPage && advance) || (advance.blocked && restoredAt > 0 && !wentBack)) {
      wentBack = true;
      yield await store.write((tx) => goBack(tx, row));
      stored = await store.read((tx) => loadGroup(tx, groupId));
      continue;
    }
    const step = await store.write((tx) =>
      commitPage(core, tx, { row, advance, signers: page.signers }),
    );
    if (step !== undefined) {
      stored = { row: step.row, group: advance.group };
      yield step.events;
      if (step.row.blocked !== undefined) return 'stopped';
      // To read on after a restore tells the host that the owner misses nothing (05 §5.6).
      if (!page.has_more && (isKnown || page.events.length === 0)) return 'complete';
      yield* openUndecrypted(core, groupId);
    }
    if (budget.isSpent) {
      const event = { kind: 'group-incomplete', groupId } as const;
      await markInterrupted(core, groups, { id: groupId, event });
      yield [event];
      return 'interrupted';
    }
    // Another reader of this store was faster: continue from its position.
    if (step === undefined) stored = await store.read((tx) => loadGroup(tx, groupId));
  }
}

/**
 * Reads the group before a write. Its events are buffered for the next reader of events.
 * @throws ClientError `group_behind` if the budget ended before the timeline
 */
export async function refreshGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<void> {
  if (!(await readGroupBuffered(core, groupId, signal))) return;
  throw new ClientError('group_behind', `more of ${groupId} is left to read: synchronize it first`);
}

/** Reads the group and buffers its events. @returns whether more is left to read */
export async function readGroupBuffered(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const budget = new ReadBudget(core.reading);
  return await runToEnd(core, readGroup(core, groupId, { signal, budget }));
}

/** The row of a group whose verified state can be used. */
type VerifiedGroupRow = GroupRow & { readonly facts: GroupFacts };

/**
 * Reads the row of a group that the account is a member of and whose state is verified.
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
 * Reads a group that the account is a member of, with its members.
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

/** @throws ClientError `not_a_member`, `group_blocked` */
export function requireVerified(
  row: GroupRow | undefined,
  { groupId, member }: { readonly groupId: string; readonly member: GroupMember | undefined },
): VerifiedGroupRow {
  if (row?.blocked !== undefined) {
    const { sequence, reason } = row.blocked;
    throw new ClientError(
      'group_blocked',
      `event ${sequence}: ${reason}; ask the owner, or forget it`,
    );
  }
  if (row?.facts === undefined || member === undefined || row.standing === 'ended') {
    throw new ClientError('not_a_member', `the account is no member of ${groupId}`);
  }
  return { ...row, facts: row.facts };
}

/**
 * @returns `refused` if the host refuses this account to read; `rollback` if it has lost events that
 *   it had given, once
 */
async function readGroupPage(
  core: AccountCore,
  { row, group }: StoredGroup,
  { signal, wentBack }: { readonly signal: AbortSignal; readonly wentBack: boolean },
): Promise<VerifiedGroupPage | 'refused' | 'rollback'> {
  const params = { group_id: row.group_id, after: row.position, limit: pageSize };
  let answer: unknown;
  try {
    answer = await callPage(core, row.relay_id, { method, params, signal });
  } catch (error) {
    if (isRefusal(error, 'forbidden')) return 'refused';
    if (!wentBack && row.position > 0 && isRefusal(error, 'bad_request')) return 'rollback';
    throw row.position < 0 ? error : asRollback(error, 'group_rollback', { method });
  }
  const page = await core.network.computeAsync((network) =>
    checkRelayAnswer('invalid_group_page', method, () =>
      verifyGroupSyncPage(network, answer, params),
    ),
  );
  const fault = { reason: 'invalid_group_page', method } as const;
  checkSteps('sequence', page.events, { after: row.position, ...fault });
  checkSteps('epoch', page.events, { after: row.facts?.epoch ?? 0, ...fault });
  if (group === undefined && page.events.length === 0) {
    throw new RelayMisbehaviour('invalid_group_page', 'the creation event is missing', { method });
  }
  return page;
}

/** Rewinds the group of a host that went back. @returns the event about it, unless it was reported */
async function goBack(tx: StoreWriter, row: GroupRow): Promise<readonly GroupAccountEvent[]> {
  if (!(await rewindGroup(tx, row)) || row.rollback) return [];
  const events = [{ kind: 'group-rollback', groupId: row.group_id }] as const;
  await recordEvents(tx, events);
  return events;
}

/** Applies a verified page; does nothing if the stored position has moved meanwhile. */
async function commitPage(
  core: AccountCore,
  tx: StoreWriter,
  page: Parameters<typeof applyGroupPage>[2],
): Promise<AppliedGroupPage | undefined> {
  const latest = await groupRow(tx, page.row.group_id);
  if (latest === undefined || latest.position !== page.row.position) return undefined;
  const { leftAt: _resumed, ...row } = latest;
  const applied = await applyGroupPage(core, tx, { ...page, row });
  await recordEvents(tx, applied.events);
  return applied;
}

/** Marks the account as a member if the state at the head has it. */
async function markMember(core: AccountCore, groupId: string): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await groupRow(tx, groupId);
    const member = await memberOf(tx, groupId, core.account);
    if (row === undefined || row.standing === 'member' || member === undefined) return;
    const { application: _done, ...rest } = row;
    await putGroup(tx, { ...rest, standing: 'member' });
    await openConversation(core, tx, { kind: 'group', id: groupId });
  });
}

/**
 * Marks the membership as ended because the host refuses reading. The refusal is no event of the
 * chain and changes no verified state.
 */
async function markExcluded(
  core: AccountCore,
  { row: { group_id } }: StoredGroup,
): Promise<(readonly GroupAccountEvent[])[]> {
  return await core.store.write(async (tx) => {
    const row = await groupRow(tx, group_id);
    // An applicant is refused until it is admitted.
    if (row === undefined || (row.standing !== 'member' && row.standing !== 'known')) return [];
    await putGroup(tx, asEnded(row));
    if (row.standing !== 'member') return [];
    const events = [{ kind: 'group-ended', groupId: group_id }] as const;
    await recordEvents(tx, events);
    return [events];
  });
}
