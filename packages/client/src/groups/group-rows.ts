/**
 * Groups as this device keeps them. What one page of events changes is written in one transaction
 * with the position behind it, row by row: what a page costs depends on the page, not on the group
 * (05 §5.5, §17.2).
 */
import {
  type GroupApplication,
  type GroupCreate,
  type GroupMember,
  type GroupNickname,
  type GroupProjection,
  type GroupSecretBox,
  restoreGroup,
  type SavedGroup,
} from '@posthouse/protocol';
import { ClientError } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** How this account stands to a group, as far as this device knows. */
export type GroupMembership =
  /** The creation left; whether the host took it is not known yet. */
  | 'creating'
  /** An application left; reading is tried until it is permitted. */
  | 'applied'
  /** Another own device told of the group; nothing is verified yet. */
  | 'known'
  | 'member'
  /** Left, removed or banned: the host lets this account read no more. */
  | 'ended';

/** Verified facts without members and bans, which are rows of their own. */
export type GroupFacts = Omit<SavedGroup, 'members' | 'bans'>;

/** The management event that could not be applied; nothing behind it is processed (05 §5.5). */
export interface GroupBlock {
  readonly sequence: number;
  /** Code of the rule that is broken; `invalid_state` for a type of the future. */
  readonly code: string;
  readonly reason: string;
}

/** One group, by its ID. */
export interface GroupRow {
  readonly group_id: string;
  /** Relay ID of the host; the group's ID is bound to it. */
  readonly relay_id: string;
  readonly standing: GroupMembership;
  /** Sequence up to which every event is completely processed; -1 before the creation. */
  readonly position: number;
  /** Verified state at the position; absent before the creation event. */
  readonly facts?: GroupFacts;
  readonly blocked?: GroupBlock;
  /** Not to be shown; only where the standing is `ended`. */
  readonly isForgotten?: boolean;
  /** Epoch up to which key material was asked for and processed; -1 at the beginning. */
  readonly keysThrough: number;
  /** The member public key whose box was opened and verified: the key in use. */
  readonly activeKey?: string;
  /** The member public key whose private key the other own devices were asked for. */
  readonly askedFor?: string;
  /** Unix milliseconds at which reading stopped though there was more. */
  readonly leftAt?: number;
  /** Kept until the group is there, for an unchanged repeat. */
  readonly creation?: { readonly create: GroupCreate; readonly client_secret_box: GroupSecretBox };
  /** Kept until the host took it, for an unchanged repeat. */
  readonly application?: GroupApplication;
}
export const groups = new Collection<GroupRow>('groups');

/** A group nothing was read of. */
export function emptyGroupRow(
  address: Pick<GroupRow, 'group_id' | 'relay_id'>,
): Omit<GroupRow, 'standing'> {
  return { ...address, position: -1, keysThrough: -1 };
}

/**
 * A group its account is no member of any more. Everything verified stays; should it be read again,
 * keys are asked for from the beginning.
 */
export function asEnded({ activeKey: _active, ...row }: GroupRow): GroupRow {
  return { ...row, standing: 'ended', keysThrough: -1 };
}

const members = new Collection<GroupMember>('group-members');
const bans = new Collection<true>('group-bans');

/** The newest nickname update of each member (05 §14.4). */
export const nicknames = new Collection<GroupNickname>('group-nicknames');

/** A group with its verified state, one consistent read. */
export interface StoredGroup {
  readonly row: GroupRow;
  readonly group: GroupProjection | undefined;
}

/** @throws ClientError `not_a_member` where this device knows no such group */
export async function loadGroup(tx: StoreReader, groupId: string): Promise<StoredGroup> {
  const row = await groups.get(tx, groupId);
  if (row === undefined) throw new ClientError('not_a_member', `${groupId} is not known here`);
  if (row.facts === undefined) return { row, group: undefined };
  const prefix = `${groupId}/`;
  const saved: SavedGroup = {
    ...row.facts,
    members: (await members.list(tx, { prefix })).map(({ value }) => value),
    bans: (await bans.list(tx, { prefix })).map(({ key }) => key.slice(prefix.length)),
  };
  return { row, group: restoreGroup(saved) };
}

/** A member of the verified state, without the others. */
export async function memberOf(
  tx: StoreReader,
  groupId: string,
  account: string,
): Promise<GroupMember | undefined> {
  return await members.get(tx, keyOf(groupId, account));
}

export async function groupRow(tx: StoreReader, groupId: string): Promise<GroupRow | undefined> {
  return await groups.get(tx, groupId);
}

export async function groupRows(tx: StoreReader): Promise<GroupRow[]> {
  return (await groups.list(tx)).map(({ value }) => value);
}

export async function putGroup(tx: StoreWriter, row: GroupRow): Promise<void> {
  await groups.put(tx, row.group_id, row);
}

/** Writes the members and bans that events touched, as they are after them. */
export async function putMembers(
  tx: StoreWriter,
  group: GroupProjection,
  touched: { readonly members: Iterable<string>; readonly bans: Iterable<string> },
): Promise<void> {
  for (const account of touched.members) {
    const member = group.members.get(account);
    const key = keyOf(group.group_id, account);
    await (member === undefined ? members.delete(tx, key) : members.put(tx, key, member));
  }
  for (const account of touched.bans) {
    const key = keyOf(group.group_id, account);
    await (group.bans.has(account) ? bans.put(tx, key, true) : bans.delete(tx, key));
  }
}

/** The facts of a state, for the row. */
export function factsOf({ members: _members, bans: _bans, ...facts }: GroupProjection): GroupFacts {
  return facts;
}
