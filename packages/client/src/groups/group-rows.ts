/**
 * Stored groups. The changes of one page of events are written in one transaction with the new
 * position, row by row: the cost of a page depends on the page, not on the group (05 §5.5, §17.2).
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
import { hideConversation } from '../conversations/conversation-rows.ts';
import { ClientError } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** The account's membership of a group, as far as this device knows. */
export type GroupMembership =
  /** The creation was sent; the host's answer is not known yet. */
  | 'creating'
  /** An application was sent; reading is tried until the host permits it. */
  | 'applied'
  /** Another own device shared the group; nothing is verified yet. */
  | 'known'
  | 'member'
  /** Left, removed or banned: the host refuses this account to read. */
  | 'ended';

/** Verified state without members and bans, which have rows of their own. */
export type GroupFacts = Omit<SavedGroup, 'members' | 'bans'>;

/** The management event that could not be applied; no later event is processed (05 §5.5). */
export interface GroupBlock {
  readonly sequence: number;
  /**
   * Code of the broken rule; `invalid_state` for an unknown event type, `host_restored` if the host was put back to
   * an earlier state and lost the event.
   */
  readonly code: string;
  readonly reason: string;
}

/** A group, by its ID. */
export interface GroupRow {
  readonly group_id: string;
  /** Relay ID of the host; the group's ID is bound to it. */
  readonly relay_id: string;
  readonly standing: GroupMembership;
  /** Sequence up to which every event is processed; -1 before the creation. */
  readonly position: number;
  /** Verified state at the position; absent before the creation event. */
  readonly facts?: GroupFacts;
  readonly blocked?: GroupBlock;
  /** Hidden from lists; only if `standing` is `ended`. */
  readonly isForgotten?: boolean;
  /** Epoch up to which key material was requested and processed; -1 at the beginning. */
  readonly keysThrough: number;
  /** Public key of the active member key: its box was opened and verified. */
  readonly activeKey?: string;
  /** Public key whose private key was requested from the other own devices. */
  readonly askedFor?: string;
  /** Unix milliseconds at which reading stopped with more left to read. */
  readonly leftAt?: number;
  /** What the host said of its last restore when it was last read, Unix seconds; absent for never. */
  readonly restoredAt?: number;
  /** Whether a rollback was reported; until an event is applied that was not known. */
  readonly rollback?: true;
  /** Stored until the group can be read, for an unchanged repeat. */
  readonly creation?: { readonly create: GroupCreate; readonly client_secret_box: GroupSecretBox };
  /** Stored until the host accepted it, for an unchanged repeat. */
  readonly application?: GroupApplication;
  /** Unix milliseconds of the last application. */
  readonly appliedAt?: number;
}
export const groups = new Collection<GroupRow>('groups');

/** Returns the row of a group that was not read yet. */
export function emptyGroupRow(
  address: Pick<GroupRow, 'group_id' | 'relay_id'>,
): Omit<GroupRow, 'standing'> {
  return { ...address, position: -1, keysThrough: -1 };
}

/**
 * Returns the row of a group after the end of the membership. Verified state stays; if the group is
 * read again, keys are requested from the beginning.
 */
export function asEnded({ activeKey: _active, ...row }: GroupRow): GroupRow {
  return { ...row, standing: 'ended', keysThrough: -1 };
}

const members = new Collection<GroupMember>('group-members');
const bans = new Collection<true>('group-bans');

/** The newest nickname update of each member (05 §14.4). */
export const nicknames = new Collection<GroupNickname>('group-nicknames');

/** A group with its verified state, from one snapshot. */
export interface StoredGroup {
  readonly row: GroupRow;
  readonly group: GroupProjection | undefined;
}

/** Loads a group with all its members. @throws ClientError `not_a_member` for an unknown group */
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

/** Reads one member of the verified state. */
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
  if (row.isForgotten) await hideConversation(tx, { kind: 'group', id: row.group_id });
}

/** Writes the members and bans that events changed, in their new state. */
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

/** Returns a state without members and bans, as the row stores it. */
export function factsOf({ members: _members, bans: _bans, ...facts }: GroupProjection): GroupFacts {
  return facts;
}
