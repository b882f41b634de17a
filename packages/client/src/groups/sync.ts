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
import type { AccountCore } from '../core.ts';
import { ClientError, isRefusal, RelayMisbehaviour, relayMust } from '../errors.ts';
import type { GroupAccountEvent } from '../events.ts';
import { callForPage } from '../hosted.ts';
import type { StoreWriter } from '../store/index.ts';
import { type AppliedPage, applyPage } from './apply.ts';
import { readKeys } from './keys.ts';
import { openPending } from './open.ts';
import {
  type GroupFacts,
  type GroupRow,
  groupRow,
  type KeptGroup,
  loadGroup,
  memberOf,
  noLonger,
  putGroup,
} from './rows.ts';

const method = 'group.sync';

/** Events asked for at once; the host may give fewer. */
const pageSize = 100;

/** Whether reading a group is worth a call. */
export function isReadable(row: GroupRow): boolean {
  return row.standing !== 'ended' && row.facts?.status !== 'closed';
}

/**
 * Catches a group up: events, then key material, then messages that waited for it. What one page
 * brings is committed with the position before the next is asked for. Gives what happened.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; what was applied before stays
 */
export async function* readGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  const { store } = core;
  let kept = await store.read((tx) => loadGroup(tx, groupId));
  // Twice: key material may be of an epoch whose event came after the last page.
  for (let round = 0; round < 2; round += 1) {
    let isMore = true;
    while (isMore) {
      signal.throwIfAborted();
      const page = await readPage(core, kept, signal);
      if (page === 'refused') return yield* await endMembership(core, kept);
      const { group_id, relay_id } = kept.row;
      const led = advanceGroup(core.network, kept.group ?? { group_id, relay_id }, page);
      const step = await store.write((tx) => commitPage(core, tx, { row: kept.row, led }));
      if (step === undefined) {
        // Another reader of this store was faster; its pages count.
        kept = await store.read((tx) => loadGroup(tx, groupId));
        continue;
      }
      kept = { row: step.row, group: led.group };
      yield step.events;
      if (step.row.blocked !== undefined) return;
      isMore = page.has_more;
      if (isMore) yield* openPending(core, groupId);
    }
    await beginMembership(core, groupId);
    const keys = yield* readKeys(core, groupId, signal);
    yield* openPending(core, groupId);
    if (!keys.isAhead) return;
  }
}

/** {@link readGroup} to its end. */
export async function syncGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<GroupAccountEvent[]> {
  const events: GroupAccountEvent[] = [];
  for await (const found of readGroup(core, groupId, signal)) events.push(...found);
  return events;
}

/** Catches up on the way to something else: whoever reads events is told later. */
export async function refreshGroup(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<void> {
  for await (const events of readGroup(core, groupId, signal)) core.happenings.add(events);
}

/** A group whose verified state can be used. */
type UsableRow = GroupRow & { readonly facts: GroupFacts };

/**
 * A group this account is a member of, its state verified and usable, without its members.
 * @throws ClientError `not_a_member`, `group_blocked`
 */
export async function requireRow(core: AccountCore, groupId: string): Promise<UsableRow> {
  return await core.store.read(async (tx) => {
    const row = await groupRow(tx, groupId);
    return usable(row, { groupId, member: await memberOf(tx, groupId, core.account) });
  });
}

/**
 * The same with its members.
 * @throws ClientError `not_a_member`, `group_blocked`
 */
export async function requireGroup(
  core: AccountCore,
  groupId: string,
): Promise<{ readonly row: UsableRow; readonly group: GroupProjection }> {
  return await core.store.read(async (tx) => {
    const { row, group } = await loadGroup(tx, groupId);
    const member = group?.members.get(core.account);
    return { row: usable(row, { groupId, member }), group: group as GroupProjection };
  });
}

function usable(
  row: GroupRow | undefined,
  { groupId, member }: { readonly groupId: string; readonly member: GroupMember | undefined },
): UsableRow {
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
async function readPage(
  core: AccountCore,
  { row, group }: KeptGroup,
  signal: AbortSignal,
): Promise<VerifiedGroupPage | 'refused'> {
  const params = { group_id: row.group_id, after: row.position, limit: pageSize };
  let answer: unknown;
  try {
    answer = await callForPage(core, row.relay_id, { method, params, signal });
  } catch (error) {
    if (isRefusal(error, 'forbidden')) return 'refused';
    if (!isRefusal(error, 'bad_request') || row.position < 0) throw error;
    // The one fault such a request can have: a position above the host's head (05 §12.8).
    throw new RelayMisbehaviour('group_rollback', 'the host lost events it had given', {
      method,
      cause: error,
    });
  }
  const page = relayMust('invalid_group_page', method, () =>
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
): Promise<AppliedPage | undefined> {
  const row = await groupRow(tx, page.row.group_id);
  if (row === undefined || row.position !== page.row.position) return undefined;
  return await applyPage(core, tx, { row, advance: page.led });
}

/** The end of the chain says whether the account is a member. */
async function beginMembership(core: AccountCore, groupId: string): Promise<void> {
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
async function endMembership(
  core: AccountCore,
  { row: { group_id } }: KeptGroup,
): Promise<(readonly GroupAccountEvent[])[]> {
  return await core.store.write(async (tx) => {
    const row = await groupRow(tx, group_id);
    // Applicants are refused until they are admitted.
    if (row === undefined || (row.standing !== 'member' && row.standing !== 'known')) return [];
    await putGroup(tx, noLonger(row));
    return row.standing === 'member' ? [[{ kind: 'group-ended', group_id }]] : [];
  });
}
