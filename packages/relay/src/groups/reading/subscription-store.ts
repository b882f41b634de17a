/** All SQL of subscriptions. The subscriptions themselves are only in their connection's process. */
import type { TimelinePosition } from '@posthouse/protocol';
import { chunks, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row } from '../../storage/types.ts';
import type { DeviceKey } from '../chain/access-store.ts';

/** A group as a subscribing device finds it. */
export interface Subscribable extends TimelinePosition {
  readonly groupId: string;
  /** Whether the account may read it; a ban ends membership (05 §9.2). */
  readonly isMember: boolean;
  /** Whether a successful call of the device opens an interval (05 §10.2). */
  readonly needsInterval: boolean;
}

interface SubscribableRow extends Row {
  groupId: string;
  status: string;
  sequence: number;
  epoch: number;
  member: string | null;
  open: string | null;
}

/** Reads those of the groups that exist here, by ID. */
export async function readSubscribable(
  tx: Reader,
  groupIds: readonly string[],
  { account, deviceId }: DeviceKey,
): Promise<Map<string, Subscribable>> {
  const found = new Map<string, Subscribable>();
  for (const some of chunks(groupIds)) {
    const rows = await tx.all<SubscribableRow>(
      `SELECT g.group_id AS "groupId", g.status, g.sequence, g.epoch, m.account AS member,
          i.device_id AS open
        FROM groups g
        LEFT JOIN group_members m ON m.group_id = g.group_id AND m.account = ?
        LEFT JOIN group_intervals i ON i.group_id = g.group_id AND i.account = ?
          AND i.device_id = ? AND i.message_to IS NULL
        WHERE g.group_id IN (${placeholders(some)})`,
      account,
      account,
      deviceId,
      ...some,
    );
    for (const { groupId, status, sequence, epoch, member, open } of rows) {
      const needsInterval = status === 'active' && open === null;
      found.set(groupId, { groupId, sequence, epoch, isMember: member !== null, needsInterval });
    }
  }
  return found;
}

/** The accounts that may read a group, of those asked for, and the head of its timeline. */
export interface GroupReaders {
  readonly sequence: number;
  readonly members: ReadonlySet<string>;
}

/** Reads which of the accounts may read a group; `undefined` if the group is not here. */
export async function readGroupReaders(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<GroupReaders | undefined> {
  const group = await tx.get<{ sequence: number }>(
    'SELECT sequence FROM groups WHERE group_id = ?',
    groupId,
  );
  if (group === undefined) return undefined;
  const members = new Set<string>();
  for (const some of chunks([...new Set(accounts)])) {
    const rows = await tx.all<{ account: string }>(
      `SELECT account FROM group_members WHERE group_id = ? AND account IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const { account } of rows) members.add(account);
  }
  return { sequence: group.sequence, members };
}

/** Reads the heads of groups, and the sequences from which on subscribers must be confirmed. */
export async function readGroupHeads(
  tx: Reader,
  groupIds: readonly string[],
): Promise<{ readonly group: string; readonly head: number; readonly accessEnded: number }[]> {
  const heads = [];
  for (const some of chunks(groupIds)) {
    const rows = await tx.all<{ group: string; head: number; accessEnded: number }>(
      `SELECT group_id AS "group", sequence AS head, access_ended AS "accessEnded"
        FROM groups WHERE group_id IN (${placeholders(some)})`,
      ...some,
    );
    heads.push(...rows);
  }
  return heads;
}

/** Reads owners and administrators of groups, by group. */
export async function readManagersOf(
  tx: Reader,
  groupIds: readonly string[],
): Promise<Map<string, string[]>> {
  const managers = new Map<string, string[]>();
  for (const some of chunks(groupIds)) {
    const rows = await tx.all<{ group_id: string; account: string }>(
      `SELECT group_id, account FROM group_members
        WHERE group_id IN (${placeholders(some)}) AND role <> 'member'`,
      ...some,
    );
    for (const { group_id: group, account } of rows) {
      managers.set(group, [...(managers.get(group) ?? []), account]);
    }
  }
  return managers;
}
