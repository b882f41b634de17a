/** All SQL of a group's projection: the group itself, its members, its bans. */
import type { GroupMember, GroupProperties, GroupRole, GroupView } from '@posthouse/protocol';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Statement, Writer } from '../../storage/types.ts';
import { storableText, storedText } from '../../storage/values.ts';

/** The row of a group. */
export interface StoredGroup {
  readonly group_id: string;
  readonly status: 'active' | 'closed';
  readonly owner: string;
  readonly name: string;
  readonly description: string;
  readonly member_capacity: number;
  readonly invite_policy: GroupView['invite_policy'];
  readonly commitment: string;
  readonly chain_head: string;
  readonly sequence: number;
  readonly epoch: number;
  readonly member_count: number;
  readonly ban_count: number;
  /** Sequence of the last event that ended a right to read. */
  readonly access_ended: number;
  /** The set of client boxes in force. */
  readonly box_set: number;
  readonly last_box_set: number;
  /**
   * Until when the owner may hand back what restores lost of the chain, Unix seconds; `null` if none
   * did, or the chain went on since (05 §5.6).
   */
  readonly losses_end_at: number | null;
  /** Until when others than the owner write nothing to the chain, Unix seconds; `null` if they may. */
  readonly held_until: number | null;
  /** Bytes of all stored events and messages. */
  readonly stored_bytes: number;
}

const columns = `group_id, status, owner, name, description, member_capacity, invite_policy,
  commitment, chain_head, sequence, epoch, member_count, ban_count, access_ended, box_set,
  last_box_set, losses_end_at, held_until, stored_bytes`;

/** Reads the row of a group. */
export async function readGroup(tx: Reader, groupId: string): Promise<StoredGroup | undefined> {
  const row = await tx.get<StoredGroup & Row>(
    `SELECT ${columns} FROM groups WHERE group_id = ?`,
    groupId,
  );
  if (row === undefined) return undefined;
  return { ...row, name: storedText(row.name), description: storedText(row.description) };
}

/** Returns whether an account owns so many groups here, closed ones included. */
export async function ownsGroups(tx: Reader, owner: string, count: number): Promise<boolean> {
  const last = await tx.get(
    'SELECT group_id FROM groups WHERE owner = ? LIMIT 1 OFFSET ?',
    owner,
    count - 1,
  );
  return last !== undefined;
}

export async function insertGroup(tx: Writer, group: StoredGroup): Promise<void> {
  await tx.run(
    `INSERT INTO groups (${columns})
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    group.group_id,
    ...changeable(group),
    group.stored_bytes,
  );
}

/**
 * Replaces a group's row, but for its bytes: the job for retention changes these without holding the
 * group.
 *
 * @param added bytes of the event that was stored
 */
export async function updateGroup(tx: Writer, group: StoredGroup, added: number): Promise<void> {
  await tx.run(
    `UPDATE groups SET status = ?, owner = ?, name = ?, description = ?, member_capacity = ?,
        invite_policy = ?, commitment = ?, chain_head = ?, sequence = ?, epoch = ?,
        member_count = ?, ban_count = ?, access_ended = ?, box_set = ?, last_box_set = ?,
        losses_end_at = ?, held_until = ?, stored_bytes = stored_bytes + ?
      WHERE group_id = ?`,
    ...changeable(group),
    added,
    group.group_id,
  );
}

/** Moves the head of the timeline to a message, and counts its bytes; it changes nothing else. */
export function setSequence(
  groupId: string,
  { sequence, bytes }: { readonly sequence: number; readonly bytes: number },
): Statement {
  return [
    'UPDATE groups SET sequence = ?, stored_bytes = stored_bytes + ? WHERE group_id = ?',
    sequence,
    bytes,
    groupId,
  ];
}

/** Records the highest number of a set of client boxes. */
export async function setLastBoxSet(tx: Writer, groupId: string, boxSet: number): Promise<void> {
  await tx.run('UPDATE groups SET last_box_set = ? WHERE group_id = ?', boxSet, groupId);
}

function changeable(group: StoredGroup): (string | number | null)[] {
  return [
    group.status,
    group.owner,
    storableText(group.name),
    storableText(group.description),
    group.member_capacity,
    group.invite_policy,
    group.commitment,
    group.chain_head,
    group.sequence,
    group.epoch,
    group.member_count,
    group.ban_count,
    group.access_ended,
    group.box_set,
    group.last_box_set,
    group.losses_end_at,
    group.held_until,
  ];
}

/** Those of the accounts of a call that are members or banned. */
export interface KnownAccounts {
  readonly members: ReadonlyMap<string, GroupMember>;
  readonly bans: ReadonlySet<string>;
}

/** A member, or without a role a banned account. */
interface AccountRow extends Row {
  account: string;
  role: GroupRole | null;
  member_key: string;
  since: number;
}

/** Reads which of the accounts are members, and which are banned. */
export async function readAccounts(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<KnownAccounts> {
  const members = new Map<string, GroupMember>();
  const bans = new Set<string>();
  for (const some of chunks(accounts)) {
    const rows = await tx.all<AccountRow>(
      `SELECT account, role, member_key, since FROM group_members
        WHERE group_id = ? AND account IN (${placeholders(some)})
      UNION ALL SELECT account, NULL, '', 0 FROM group_bans
        WHERE group_id = ? AND account IN (${placeholders(some)})`,
      ...[groupId, ...some, groupId, ...some],
    );
    for (const { account, role, member_key, since } of rows) {
      if (role === null) bans.add(account);
      else members.set(account, { account, role, member_encryption_public_key: member_key, since });
    }
  }
  return { members, bans };
}

/** Reads owner and administrators. */
export async function readManagers(
  tx: Reader,
  groupId: string,
): Promise<{ readonly account: string; readonly role: GroupRole }[]> {
  return await tx.all<{ account: string; role: GroupRole }>(
    `SELECT account, role FROM group_members WHERE group_id = ? AND role <> 'member'
      ORDER BY account`,
    groupId,
  );
}

export async function insertMember(
  tx: Writer,
  groupId: string,
  { account, role, member_encryption_public_key, since }: GroupMember,
): Promise<void> {
  await tx.run(
    'INSERT INTO group_members (group_id, account, role, member_key, since) VALUES (?, ?, ?, ?, ?)',
    groupId,
    account,
    role,
    member_encryption_public_key,
    since,
  );
}

export async function deleteMember(tx: Writer, groupId: string, account: string): Promise<void> {
  await tx.run('DELETE FROM group_members WHERE group_id = ? AND account = ?', groupId, account);
}

export async function setRole(
  tx: Writer,
  groupId: string,
  { account, role }: { readonly account: string; readonly role: GroupRole },
): Promise<void> {
  await tx.run(
    'UPDATE group_members SET role = ? WHERE group_id = ? AND account = ?',
    role,
    groupId,
    account,
  );
}

export async function setMemberKey(
  tx: Writer,
  groupId: string,
  { account, key }: { readonly account: string; readonly key: string },
): Promise<void> {
  await tx.run(
    'UPDATE group_members SET member_key = ? WHERE group_id = ? AND account = ?',
    key,
    groupId,
    account,
  );
}

export async function insertBan(tx: Writer, groupId: string, account: string): Promise<void> {
  await tx.run('INSERT INTO group_bans (group_id, account) VALUES (?, ?)', groupId, account);
}

export async function deleteBan(tx: Writer, groupId: string, account: string): Promise<void> {
  await tx.run('DELETE FROM group_bans WHERE group_id = ? AND account = ?', groupId, account);
}

/** Returns a group's state without its members and bans, as the rules of the chain read it. */
export function factsOf(group: StoredGroup): Omit<GroupView, 'members' | 'bans'> & GroupProperties {
  const { group_id, status, owner, name, description } = group;
  const { member_capacity, invite_policy, commitment, chain_head, sequence, epoch } = group;
  return {
    group_id,
    status,
    owner,
    name,
    description,
    member_capacity,
    invite_policy,
    client_secret_commitment: commitment,
    head: chain_head,
    sequence,
    epoch,
  };
}
