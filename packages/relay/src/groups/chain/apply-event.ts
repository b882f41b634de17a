/** Writes what a decided chain event changes: every table of the group, in one transaction. */
import {
  createGroupSecret,
  encodeBase64url,
  type GroupEffects,
  nextGroupPosition,
  openAccessAt,
  stagingAfter,
  type TimelinePosition,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import type { Signer } from '../../accounts/index.ts';
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
import { applicationsNotice, type Requester, recoveriesNotice, timelineNotice } from './notices.ts';

/** What an approved application or recovery request brings for its account. */
export interface Arrival {
  /** The device that signed the request; its access begins with the event. */
  readonly deviceId: string;
  /** Canonical JSON of the account's client secret box. */
  readonly box: string;
}

/** A chain event that was decided and is to be appended. */
export interface Change {
  readonly effects: GroupEffects;
  /** Canonical JSON of the signed body. */
  readonly payload: string;
  /** Management digest of the body, the next head of the chain. */
  readonly head: string;
  readonly signer: Signer;
  /** Unix seconds. */
  readonly now: number;
  /** By account, for those that join and those whose key was recovered. */
  readonly arrivals?: ReadonlyMap<string, Arrival>;
  /** Uses of invitations that those who join take. */
  readonly uses?: readonly InviteUse[];
  /** A staged rotation that takes effect with the event. */
  readonly rotation?: StoredStaging;
}

export interface Means {
  readonly random: Random;
  readonly limits: RelayLimits;
}

/**
 * Appends the event and makes its effects true.
 * @returns what subscribed connections must hear once it is durable
 * @throws ProtocolError `state_conflict` where sequence or epoch is exhausted
 */
export async function applyChange(
  tx: Writer,
  group: LoadedGroup,
  change: Change,
  means: Means,
): Promise<Notice[]> {
  const { stored, view } = group;
  const { effects, now } = change;
  const position = nextGroupPosition(view, effects);
  const next = nextGroup(stored, change, position);
  const event = { ...position, acceptedAt: now, payload: change.payload };
  await insertEvent(tx, stored.group_id, { event, signer: change.signer });
  if (effects.advancesEpoch) await beginEpoch(tx, next, now, means);
  const ended = await endMemberships(tx, group, change);
  await changeMembers(tx, next, { change, position });
  const rekeyed = await replaceKeys(tx, group, { change, position });
  const dropped = await changeBans(tx, stored.group_id, effects);
  await settleStaging(tx, next, change);
  await updateGroup(tx, next);
  const notices: Notice[] = [timelineNotice(next)];
  if (dropped || effects.joined.length > 0) {
    notices.push(await applicationsNotice(tx, stored.group_id));
  }
  const requesters = [...ended, ...rekeyed];
  if (requesters.length > 0) {
    notices.push(await recoveriesNotice(tx, stored.group_id, requesters));
  }
  return notices;
}

/** The group's row behind the event. */
function nextGroup(
  stored: StoredGroup,
  { effects, head, rotation }: Change,
  position: TimelinePosition,
): StoredGroup {
  return {
    ...stored,
    ...effects.properties,
    ...position,
    status: effects.closes ? 'closed' : stored.status,
    owner: effects.owner ?? stored.owner,
    commitment: effects.client_secret_commitment ?? stored.commitment,
    chain_head: head,
    member_count: stored.member_count + effects.joined.length - effects.left.length,
    ban_count: stored.ban_count + effects.banned.length - effects.unbanned.length,
    access_ended: effects.left.length > 0 ? position.sequence : stored.access_ended,
    box_set: rotation?.boxSet ?? stored.box_set,
  };
}

/** A fresh relay secret for the epoch the group is in now. */
export async function beginEpoch(
  tx: Writer,
  group: Pick<StoredGroup, 'group_id' | 'epoch' | 'box_set'>,
  now: number,
  { random, limits }: Means,
): Promise<void> {
  await insertEpoch(tx, group.group_id, {
    epoch: group.epoch,
    relaySecret: encodeBase64url(createGroupSecret(random)),
    boxSet: group.box_set,
    keepUntil: now + limits.groupMessageRetention,
  });
}

/** Membership, intervals and recovery requests go together (05 §9.1, §9.2). */
async function endMemberships(
  tx: Writer,
  { stored, view }: LoadedGroup,
  { effects, now }: Change,
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

interface Applied {
  readonly change: Change;
  readonly position: TimelinePosition;
}

/** Admissions with their boxes and access, and roles. */
async function changeMembers(
  tx: Writer,
  group: StoredGroup,
  { change, position }: Applied,
): Promise<void> {
  const { effects, arrivals, uses = [] } = change;
  const { group_id: groupId } = group;
  await forEach(uses, (use) => addUses(tx, groupId, use));
  const joined = effects.joined.map(({ account }) => account);
  await deleteApplications(tx, groupId, joined);
  await forEach(effects.joined, async (member) => {
    const since = position.sequence;
    await insertMember(tx, groupId, { ...member, role: 'member', since });
    await welcome(tx, group, { account: member.account, position, arrivals });
  });
  for (const role of effects.roles) await setRole(tx, groupId, role);
}

/** The box of an account and the access of the device that asked, both from the event on. */
async function welcome(
  tx: Writer,
  group: StoredGroup,
  {
    account,
    position,
    arrivals,
  }: {
    readonly account: string;
    readonly position: TimelinePosition;
    readonly arrivals: Change['arrivals'];
  },
): Promise<void> {
  const arrival = arrivals?.get(account);
  if (arrival === undefined) throw new Error('an account arrives without its box');
  const { deviceId, box } = arrival;
  const key = { boxSet: group.box_set, account, fromEpoch: position.epoch };
  await writeBox(tx, group.group_id, { ...key, box });
  const access = openAccessAt(position);
  await openInterval(tx, group.group_id, { account, deviceId, access });
}

/** New member keys; a recovery ends all earlier access, a rotation's own new key does not. */
async function replaceKeys(
  tx: Writer,
  { stored, view }: LoadedGroup,
  { change, position }: Applied,
): Promise<Requester[]> {
  const { effects, now, arrivals, rotation } = change;
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
    await welcome(tx, stored, { account, position, arrivals });
  });
  return requesters;
}

/** Says whether an application went with a ban. */
async function changeBans(tx: Writer, groupId: string, effects: GroupEffects): Promise<boolean> {
  await forEach(effects.banned, (account) => insertBan(tx, groupId, account));
  await forEach(effects.unbanned, (account) => deleteBan(tx, groupId, account));
  return (await deleteApplications(tx, groupId, effects.banned)) > 0;
}

/** What becomes of the staged rotation (05 §13.26, §18). */
async function settleStaging(
  tx: Writer,
  group: StoredGroup,
  { effects, rotation }: Change,
): Promise<void> {
  const { group_id: groupId } = group;
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
  let lost = 0;
  await forEach(withoutBoxOf, async (account) => {
    if (await deleteStagedBox(tx, groupId, { boxSet, account })) lost += 1;
  });
  if (lost > 0) {
    await writeStaging(tx, groupId, { ...staging, boxCount: staging.boxCount - lost });
  }
}
