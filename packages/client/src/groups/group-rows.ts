/**
 * Groups as this device keeps them. What one page of events changes is written in one transaction
 * with the position behind it, row by row: what a page costs depends on the page, not on the group
 * (05 §5.5, §17.2).
 */
import {
  type GroupApplication,
  type GroupCreate,
  type GroupEpochKeys,
  type GroupKeyHistory,
  type GroupMember,
  type GroupNickname,
  type GroupProjection,
  type GroupSecretBox,
  restoreGroup,
  type SavedGroup,
} from '@posthouse/protocol';
import { ClientError } from '../errors.ts';
import { Collection, type StoreReader, type StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** How this account stands to a group, as far as this device knows. */
export type GroupStanding =
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
  readonly standing: GroupStanding;
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
export function nothingYet(
  address: Pick<GroupRow, 'group_id' | 'relay_id'>,
): Omit<GroupRow, 'standing'> {
  return { ...address, position: -1, keysThrough: -1 };
}

/**
 * A group its account is no member of any more. Everything verified stays; should it be read again,
 * keys are asked for from the beginning.
 */
export function noLonger({ activeKey: _active, ...row }: GroupRow): GroupRow {
  return { ...row, standing: 'ended', keysThrough: -1 };
}

const members = new Collection<GroupMember>('group-members');
const bans = new Collection<true>('group-bans');

/** Commitment and own member key of every epoch of the verified chain (05 §7.5). */
const epochs = new Collection<GroupEpochKeys>('group-epochs');

/** A member private key, base64url. Which one is used, verified state alone decides (05 §16). */
export interface MemberKey {
  readonly privateKey: string;
  /** Whether this device made it, so that the others must be told. */
  readonly isOwn: boolean;
}
const memberKeys = new Collection<MemberKey>('group-keys');

/** Client secrets by the commitment they were verified against. */
const clientSecrets = new Collection<string>('group-secrets');

/** Application secrets by epoch, derived from two verified boxes. */
const epochSecrets = new Collection<string>('group-epoch-secrets');
/** Application secrets another own device sent; used only for epochs the chain confirms. */
const stagedSecrets = new Collection<string>('group-staged-secrets');

/** The newest nickname update of each member (05 §14.4). */
export const nicknames = new Collection<GroupNickname>('group-nicknames');

/** A group with its verified state, one consistent read. */
export interface KeptGroup {
  readonly row: GroupRow;
  readonly group: GroupProjection | undefined;
}

/** @throws ClientError `not_a_member` where this device knows no such group */
export async function loadGroup(tx: StoreReader, groupId: string): Promise<KeptGroup> {
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

export async function putEpochs(
  tx: StoreWriter,
  groupId: string,
  history: GroupKeyHistory,
): Promise<void> {
  for (const { epochs: each, ...keys } of history) {
    for (const epoch of each) await epochs.put(tx, keyOf(groupId, epoch), keys);
  }
}

/** Commitment and own key of one epoch, where the verified chain has that epoch. */
export async function epochKeys(
  tx: StoreReader,
  groupId: string,
  epoch: number,
): Promise<GroupEpochKeys | undefined> {
  return await epochs.get(tx, keyOf(groupId, epoch));
}

/** Keeps a member private key; one that this device made stays its own. */
export async function putMemberKey(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly publicKey: string },
  key: MemberKey,
): Promise<void> {
  const at = keyOf(id.groupId, id.publicKey);
  const known = await memberKeys.get(tx, at);
  if (known === undefined) await memberKeys.put(tx, at, key);
}

/** Member private keys of a group by their public keys. */
export async function memberKeysOf(
  tx: StoreReader,
  groupId: string,
): Promise<Map<string, MemberKey>> {
  const prefix = `${groupId}/`;
  const rows = await memberKeys.list(tx, { prefix });
  return new Map(rows.map(({ key, value }) => [key.slice(prefix.length), value]));
}

export async function clientSecret(
  tx: StoreReader,
  groupId: string,
  commitment: string,
): Promise<string | undefined> {
  return await clientSecrets.get(tx, keyOf(groupId, commitment));
}

export async function putClientSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly commitment: string },
  secret: string,
): Promise<void> {
  await clientSecrets.put(tx, keyOf(id.groupId, id.commitment), secret);
}

/** An application secret and whether this device verified it itself. */
export interface EpochSecret {
  readonly secret: string;
  readonly isVerified: boolean;
}

/**
 * The application secret of an epoch. One that another device sent counts only once verified
 * history has that epoch (05 §16).
 */
export async function epochSecret(
  tx: StoreReader,
  groupId: string,
  epoch: number,
): Promise<EpochSecret | undefined> {
  const key = keyOf(groupId, epoch);
  const secret = await epochSecrets.get(tx, key);
  if (secret !== undefined) return { secret, isVerified: true };
  if ((await epochs.get(tx, key)) === undefined) return undefined;
  const staged = await stagedSecrets.get(tx, key);
  return staged === undefined ? undefined : { secret: staged, isVerified: false };
}

export async function putEpochSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly epoch: number },
  secret: string,
): Promise<void> {
  const key = keyOf(id.groupId, id.epoch);
  await epochSecrets.put(tx, key, secret);
  await stagedSecrets.delete(tx, key);
}

/** Puts a secret of another own device aside (05 §16). */
export async function stageEpochSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly epoch: number },
  secret: string,
): Promise<void> {
  const key = keyOf(id.groupId, id.epoch);
  if ((await epochSecrets.get(tx, key)) === undefined) await stagedSecrets.put(tx, key, secret);
}

/** The newest verified application secrets of a group, oldest first. */
export async function verifiedSecrets(
  tx: StoreReader,
  groupId: string,
  limit: number,
): Promise<{ readonly epoch: number; readonly secret: string }[]> {
  const prefix = `${groupId}/`;
  const rows = await epochSecrets.list(tx, { prefix, limit, reverse: true });
  return rows
    .map(({ key, value }) => ({ epoch: Number(key.slice(prefix.length)), secret: value }))
    .reverse();
}
