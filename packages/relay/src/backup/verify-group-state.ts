/** What the relay stores next to a group's chain: sequences, members, bans and boxes. */
import type { GroupProjection } from '@posthouse/protocol';
import type { Reader, Row } from '../storage/types.ts';
import { requireHead, requireText, wrong } from './row-check.ts';

/**
 * Compares a group's rows with the state that its verified chain leads to.
 *
 * @param row of \`groups\`
 * @throws Error that says what differs
 */
export async function verifyGroupState(
  group: GroupProjection,
  row: Row,
  tx: Reader,
): Promise<void> {
  const { group_id: groupId = null } = row;
  for (const table of ['group_events', 'group_messages']) {
    await requireHead(tx, Number(row.sequence), [
      `SELECT MAX(sequence) AS highest FROM ${table} WHERE group_id = ?`,
      groupId,
    ]);
  }
  if (group.owner !== row.owner) throw wrong(`its chain has the owner ${group.owner}`);
  if (group.status !== row.status) throw wrong(`by its chain it is ${group.status}`);
  await verifyMembers(group, groupId, tx);
  await verifyBans(group, groupId, tx);
  if (group.status === 'active') await verifyBoxes(row, tx);
}

type GroupId = string | number | null;

async function verifyMembers(group: GroupProjection, groupId: GroupId, tx: Reader): Promise<void> {
  const rows = await tx.all<{ account: string; role: string; member_key: string }>(
    'SELECT account, role, member_key FROM group_members WHERE group_id = ?',
    groupId,
  );
  const stored = new Map(rows.map((row) => [row.account, row]));
  for (const { account, role, member_encryption_public_key: key } of group.members.values()) {
    const row = stored.get(account);
    if (row === undefined) throw wrong(`its member ${account} is missing`);
    if (row.role !== role) throw wrong(`${account} is ${role} by its chain, not ${row.role}`);
    if (row.member_key !== key) throw wrong(`${account} has another key by its chain`);
    stored.delete(account);
  }
  const [other] = stored.keys();
  if (other !== undefined) throw wrong(`${other} is no member by its chain`);
}

async function verifyBans(group: GroupProjection, groupId: GroupId, tx: Reader): Promise<void> {
  const rows = await tx.all<{ account: string }>(
    'SELECT account FROM group_bans WHERE group_id = ?',
    groupId,
  );
  const stored = new Set(rows.map(({ account }) => account));
  const [lost] = group.bans.difference(stored);
  if (lost !== undefined) throw wrong(`the ban of ${lost} is missing`);
  const [other] = stored.difference(group.bans);
  if (other !== undefined) throw wrong(`${other} is not banned by its chain`);
}

/** Each member has a box of the current epoch: without it the member can read nothing (05 §7.4). */
async function verifyBoxes({ group_id: groupId = null, epoch = null }: Row, tx: Reader) {
  const boxSet = await requireText(tx, `the secret of its epoch ${epoch}`, [
    'SELECT box_set AS text FROM group_epochs WHERE group_id = ? AND epoch = ?',
    groupId,
    epoch,
  ]);
  const without = await tx.get<{ account: string }>(
    `SELECT m.account FROM group_members m WHERE m.group_id = ? AND NOT EXISTS
      (SELECT 1 FROM group_boxes b WHERE b.group_id = m.group_id AND b.box_set = ?
        AND b.account = m.account AND b.from_epoch <= ?) LIMIT 1`,
    groupId,
    boxSet,
    epoch,
  );
  if (without !== undefined) throw wrong(`the key box of ${without.account} is missing`);
}
