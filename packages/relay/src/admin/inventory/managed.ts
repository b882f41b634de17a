/** Groups and channels that depend on one account: it owns them, or helps to manage them. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { Reader, Row, Storage } from '../../storage/types.ts';
import { storedText } from '../../storage/values.ts';
import { listChannels } from './owners.ts';
import { scan, step } from './scan.ts';

interface ManagerRow extends Row {
  groupId: string;
  account: string;
  role: string;
  name: string;
  status: string;
}

interface ChannelRow extends Row {
  channelId: string;
  creator: string;
  moderators: string;
  status: string;
}

/** A group or a channel with the role of the account in it. */
interface Managed {
  readonly kind: 'group' | 'channel';
  readonly id: string;
  readonly role: string;
  /** Of a channel, `null` until it is read. */
  readonly name: string | null;
}

/**
 * Lists the groups and channels that are open here and that an account owns, administers (groups) or
 * moderates (channels): first groups, then channels, each in the order of their IDs.
 *
 * @param limit the largest number of them
 * @returns `more` if there are others
 */
export async function readManaged(
  storage: Storage,
  account: string,
  limit: number,
): Promise<{ readonly items: JsonObject[]; readonly more: boolean }> {
  const found: Managed[] = [];
  await findGroups(storage, account, (group) => found.push(group) <= limit);
  await findChannels(storage, account, (channel) => found.push(channel) <= limit);
  const items: JsonObject[] = [];
  for (const managed of found.slice(0, limit)) items.push(await withName(storage, managed));
  return { items, more: found.length > limit };
}

async function withName(storage: Storage, managed: Managed): Promise<JsonObject> {
  const { kind, id } = managed;
  if (kind === 'group') return { ...managed };
  const [channel] = await storage.read((tx) => listChannels(tx, { from: id, limit: 1 }));
  return { ...managed, name: channel?.id === id ? (channel.wire.name ?? null) : null };
}

/** @param found returns whether more of them are wanted */
async function findGroups(
  storage: Storage,
  account: string,
  found: (group: Managed) => boolean,
): Promise<void> {
  const start: Pick<ManagerRow, 'groupId' | 'account'> = { groupId: '', account: '' };
  await scan(storage, start, {
    read: readManagers,
    take(rows) {
      for (const row of rows) {
        const { groupId: id, role, status } = row;
        if (row.account !== account || status === 'closed') continue;
        const isWanted = found({ kind: 'group', id, role, name: storedText(row.name) });
        if (!isWanted) return undefined;
      }
      return rows.length < step ? undefined : rows.at(-1);
    },
  });
}

async function readManagers(
  tx: Reader,
  after: Pick<ManagerRow, 'groupId' | 'account'>,
): Promise<ManagerRow[]> {
  return await tx.all<ManagerRow>(
    `SELECT m.group_id AS "groupId", m.account, m.role, g.name, g.status
      FROM group_members m JOIN groups g ON g.group_id = m.group_id
      WHERE m.role <> 'member' AND (m.group_id, m.account) > (?, ?)
      ORDER BY m.group_id, m.account LIMIT ?`,
    after.groupId,
    after.account,
    step,
  );
}

/** @param found returns whether more of them are wanted */
async function findChannels(
  storage: Storage,
  account: string,
  found: (channel: Managed) => boolean,
): Promise<void> {
  await scan(storage, '', {
    read: readChannels,
    take(rows) {
      for (const { channelId: id, creator, moderators, status } of rows) {
        if (status === 'closed') continue;
        const isModerator = () => (JSON.parse(moderators) as string[]).includes(account);
        const role = creator === account ? 'owner' : isModerator() ? 'moderator' : undefined;
        const isWanted = role === undefined || found({ kind: 'channel', id, role, name: null });
        if (!isWanted) return undefined;
      }
      return rows.length < step ? undefined : rows.at(-1)?.channelId;
    },
  });
}

async function readChannels(tx: Reader, after: string): Promise<ChannelRow[]> {
  return await tx.all<ChannelRow>(
    `SELECT channel_id AS "channelId", creator, moderators, status FROM channels
      WHERE channel_id > ? ORDER BY channel_id LIMIT ?`,
    after,
    step,
  );
}
