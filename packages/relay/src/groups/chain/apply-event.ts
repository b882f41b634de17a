/** Applies a decided management event: every table of the group, in one transaction. */
import {
  type ChainEvent,
  createGroupSecret,
  encodeBase64url,
  type GroupEffects,
  nextGroupPosition,
  openAccessAt,
  stagingAfter,
  type TimelinePosition,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import type { Caller, Signer } from '../../accounts/index.ts';
import type { HandlerResult } from '../../dispatch/handler.ts';
import type { Notice } from '../../dispatch/notice.ts';
import type { RelayLimits } from '../../limits.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Writer } from '../../storage/types.ts';
import { deleteApplications } from '../requests/application-store.ts';
import { addUses, type InviteUse } from '../requests/invite-store.ts';
import { deleteRecovery } from '../requests/recovery-store.ts';
import { endAccess, openInterval } from './access-store.ts';
import { insertEvent } from './event-store.ts';
import {
  deleteBan,
  deleteMember,
  insertBan,
  insertMember,
  type StoredGroup,
  setMemberKey,
  setRole,
  updateGroup,
} from './group-store.ts';
import {
  deleteStagedBox,
  deleteStaging,
  dropSet,
  insertEpoch,
  readStaging,
  type StoredStaging,
  writeBox,
  writeStaging,
} from './key-store.ts';
import type { LoadedGroup } from './load-group.ts';
import { deleteLosses } from './loss-store.ts';
import { applicationsNotice, type Requester, recoveriesNotice, timelineNotice } from './notices.ts';

/** A signed management event, with what its commit stores of it. */
export interface SignedEvent {
  readonly content: ChainEvent;
  /** Canonical JSON of the signed body. */
  readonly payload: string;
  /** Management digest of the body: the next head of the chain (05 §3.3). */
  readonly head: string;
}

/** What an approved application or recovery request brings its account. */
export interface ApprovedMember {
  /** The device that signed the request; its access begins with the event. */
  readonly deviceId: string;
  /** Canonical JSON of the account's client secret box. */
  readonly box: string;
}

/** An event that was decided and is to be applied in the same transaction. */
export interface DecidedEvent {
  readonly event: SignedEvent;
  /** The group before the event. */
  readonly group: LoadedGroup;
  readonly effects: GroupEffects;
  readonly caller: Caller;
  /** Unix seconds. */
  readonly now: number;
  /** By account, for those that join and those whose key was recovered. */
  readonly approved?: ReadonlyMap<string, ApprovedMember>;
  /** Uses of invitations by the accounts that join. */
  readonly uses?: readonly InviteUse[];
  /** A staged rotation that takes effect with the event. */
  readonly rotation?: StoredStaging;
}

/** An event that this host had accepted before it was put back to an earlier state. */
export interface LostEvent extends Pick<DecidedEvent, 'event' | 'group' | 'effects' | 'now'> {
  readonly signer: Signer | undefined;
  /** What the event had been given. */
  readonly at: TimelinePosition & { readonly acceptedAt: number };
}

/** The parts of the relay that an event is applied with. */
export interface ApplyContext {
  readonly random: Random;
  readonly limits: RelayLimits;
}

/**
 * Appends an event and applies its effects.
 * @returns the method's answer, with the notices of what changed
 * @throws ProtocolError `state_conflict` if sequence or epoch is exhausted
 */
export async function applyEvent(
  context: ApplyContext,
  tx: Writer,
  decided: DecidedEvent,
): Promise<HandlerResult> {
  const { group, effects, caller, now } = decided;
  const { stored, view } = group;
  const { group_id: groupId } = stored;
  const position = nextGroupPosition(view, effects);
  const next = nextGroup(decided, position);
  const event = { ...position, acceptedAt: now, payload: decided.event.payload };
  await insertEvent(tx, groupId, { event, signer: caller.signer });
  if (effects.advancesEpoch) await beginEpoch(tx, next, now, context);
  const ended = await endMemberships(tx, decided);
  await changeMembers(tx, next, decided);
  const rekeyed = await replaceKeys(tx, next, decided);
  const deletedByBan = await changeBans(tx, groupId, effects);
  await updateStaging(tx, groupId, decided);
  await updateGroup(tx, next, Buffer.byteLength(decided.event.payload));
  const notices: Notice[] = [timelineNotice(next)];
  if (deletedByBan > 0 || effects.joined.length > 0) {
    notices.push(await applicationsNotice(tx, groupId));
  }
  if (stored.losses_end_at !== null) await deleteLosses(tx, groupId);
  const requesters = [...ended, ...rekeyed];
  if (requesters.length > 0) notices.push(await recoveriesNotice(tx, groupId, requesters));
  return { result: null, notices };
}

/**
 * Applies an event at the position that it had. No epoch begins, no device is admitted and no box is
 * stored: its relay secret is lost, and those that joined have access from what follows on.
 */
export async function applyLostEvent(tx: Writer, lost: LostEvent): Promise<void> {
  const { at, effects, group, signer } = lost;
  const { group_id: groupId } = group.stored;
  const event = { ...at, payload: lost.event.payload };
  await insertEvent(tx, groupId, { event, signer });
  await endMemberships(tx, lost);
  await deleteApplications(
    tx,
    groupId,
    effects.joined.map(({ account }) => account),
  );
  await forEach(effects.joined, (member) =>
    insertMember(tx, groupId, { ...member, role: 'member', since: at.sequence }),
  );
  for (const role of effects.roles) await setRole(tx, groupId, role);
  await forEach(effects.rekeyed, async ({ account, member_encryption_public_key: key }) => {
    await setMemberKey(tx, groupId, { account, key });
    await deleteRecovery(tx, groupId, { account, now: lost.now });
  });
  await changeBans(tx, groupId, effects);
  await updateStaging(tx, groupId, lost);
  await updateGroup(tx, nextGroup(lost, at), Buffer.byteLength(event.payload));
}

/** The group's row after the event. */
function nextGroup(
  {
    event,
    effects,
    group: { stored },
    rotation,
  }: Pick<DecidedEvent, 'event' | 'effects' | 'group' | 'rotation'>,
  { sequence, epoch }: TimelinePosition,
): StoredGroup {
  return {
    ...stored,
    ...effects.properties,
    sequence,
    epoch,
    status: effects.closes ? 'closed' : stored.status,
    owner: effects.owner ?? stored.owner,
    commitment: effects.client_secret_commitment ?? stored.commitment,
    chain_head: event.head,
    member_count: stored.member_count + effects.joined.length - effects.left.length,
    ban_count: stored.ban_count + effects.banned.length - effects.unbanned.length,
    access_ended: effects.left.length > 0 ? sequence : stored.access_ended,
    box_set: rotation?.boxSet ?? stored.box_set,
    // The chain went on: what was lost before does not continue it any more (05 §5.6).
    losses_end_at: null,
    held_until: null,
  };
}

/** Creates a new relay secret for the epoch that the group is in now. */
export async function beginEpoch(
  tx: Writer,
  group: Pick<StoredGroup, 'group_id' | 'epoch' | 'box_set'>,
  now: number,
  { random, limits }: ApplyContext,
): Promise<void> {
  await insertEpoch(tx, group.group_id, {
    epoch: group.epoch,
    relaySecret: encodeBase64url(createGroupSecret(random)),
    boxSet: group.box_set,
    keepUntil: now + limits.groupMessageRetention,
  });
}

/** Ends memberships, with their intervals and recovery requests (05 §9.1, §9.2). */
async function endMemberships(
  tx: Writer,
  { effects, group: { stored, view }, now }: Pick<DecidedEvent, 'effects' | 'group' | 'now'>,
): Promise<Requester[]> {
  const requesters: Requester[] = [];
  await forEach(effects.left, async (account) => {
    await deleteMember(tx, stored.group_id, account);
    await endAccess(tx, stored.group_id, { account, at: stored });
    if (!(await deleteRecovery(tx, stored.group_id, { account, now }))) return;
    const role = view.members.get(account)?.role ?? 'member';
    requesters.push({ account, role, isMember: false });
  });
  return requesters;
}

/** Adds members with their boxes and access, and sets roles. */
async function changeMembers(
  tx: Writer,
  next: StoredGroup,
  { approved, effects, uses = [] }: DecidedEvent,
): Promise<void> {
  const { group_id: groupId, sequence: since } = next;
  await forEach(uses, (use) => addUses(tx, groupId, use));
  const joined = effects.joined.map(({ account }) => account);
  await deleteApplications(tx, groupId, joined);
  await forEach(effects.joined, async (member) => {
    await insertMember(tx, groupId, { ...member, role: 'member', since });
    await admitDevice(tx, next, { account: member.account, approved });
  });
  for (const role of effects.roles) await setRole(tx, groupId, role);
}

/** Stores the account's box and opens access for the device that asked, both from the event on. */
async function admitDevice(
  tx: Writer,
  next: StoredGroup,
  { account, approved }: { readonly account: string; readonly approved: DecidedEvent['approved'] },
): Promise<void> {
  const member = approved?.get(account);
  if (member === undefined) throw new Error('an approved account has no box');
  const { group_id: groupId, box_set: boxSet, epoch: fromEpoch } = next;
  await writeBox(tx, groupId, { boxSet, account, fromEpoch, box: member.box });
  const access = openAccessAt(next);
  await openInterval(tx, groupId, { account, deviceId: member.deviceId, access });
}

/** Replaces member keys. A recovery ends all earlier access, a rotation's new owner key does not. */
async function replaceKeys(
  tx: Writer,
  next: StoredGroup,
  { approved, effects, group: { stored, view }, now, rotation }: DecidedEvent,
): Promise<Requester[]> {
  const requesters: Requester[] = [];
  const { group_id: groupId } = stored;
  await forEach(effects.rekeyed, async ({ account, member_encryption_public_key: key }) => {
    await setMemberKey(tx, groupId, { account, key });
    if (await deleteRecovery(tx, groupId, { account, now })) {
      const role = view.members.get(account)?.role ?? 'member';
      requesters.push({ account, role, isMember: true });
    }
    if (rotation !== undefined) return;
    await endAccess(tx, groupId, { account, at: stored });
    await admitDevice(tx, next, { account, approved });
  });
  return requesters;
}

/** @returns how many applications were deleted with bans */
async function changeBans(tx: Writer, groupId: string, effects: GroupEffects): Promise<number> {
  await forEach(effects.banned, (account) => insertBan(tx, groupId, account));
  await forEach(effects.unbanned, (account) => deleteBan(tx, groupId, account));
  return await deleteApplications(tx, groupId, effects.banned);
}

/** Ends the staged rotation, or deletes the boxes in it that no longer fit (05 §13.26, §18). */
async function updateStaging(
  tx: Writer,
  groupId: string,
  { effects, rotation }: Pick<DecidedEvent, 'effects' | 'rotation'>,
): Promise<void> {
  if (rotation !== undefined) {
    await deleteStaging(tx, groupId);
    return;
  }
  const { ends, withoutBoxOf } = stagingAfter(effects);
  if (!ends && withoutBoxOf.length === 0) return;
  const staging = await readStaging(tx, groupId);
  if (staging === undefined) return;
  const { boxSet } = staging;
  if (ends) {
    await deleteStaging(tx, groupId);
    await dropSet(tx, groupId, boxSet);
    return;
  }
  let deleted = 0;
  await forEach(withoutBoxOf, async (account) => {
    if (await deleteStagedBox(tx, groupId, { boxSet, account })) deleted += 1;
  });
  if (deleted > 0) {
    await writeStaging(tx, groupId, { ...staging, boxCount: staging.boxCount - deleted });
  }
}
