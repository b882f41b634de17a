/** SQL of lists of accounts, groups and channels, in the order of their IDs. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { Reader, Row } from '../../storage/types.ts';
import { storedText } from '../../storage/values.ts';

interface AccountRow extends Row {
  account: string;
  revision: number;
  relay: string | null;
  devices: number;
  profile_at: number | null;
  attachments: number | null;
}

interface GroupRow extends Row {
  id: string;
  name: string;
  status: string;
  owner: string;
  members: number;
  sequence: number;
}

interface ChannelRow extends Row {
  id: string;
  status: string;
  owner: string;
  revision: number;
  head: number;
  descriptor: string | null;
}

/** Something that owns records, as operators are shown it. */
export interface Owner {
  readonly id: string;
  readonly wire: JsonObject;
}

interface Range {
  /** The first ID. */
  readonly from: string;
  readonly limit: number;
}

/** Lists the accounts that are, or were, at home here: `home` is the relay of their route. */
export async function listAccounts(tx: Reader, { from, limit }: Range): Promise<Owner[]> {
  const rows = await tx.all<AccountRow>(
    `SELECT d.account, d.revision, r.relay_id AS relay, p.updated_at AS profile_at,
        u.counted AS attachments,
        (SELECT count(*) FROM devices v WHERE v.account = d.account) AS devices
      FROM device_states d
        LEFT JOIN account_routes r ON r.account = d.account
        LEFT JOIN profiles p ON p.account = d.account
        LEFT JOIN blob_usage u ON u.account = d.account
      WHERE d.account >= ? ORDER BY d.account LIMIT ?`,
    from,
    limit,
  );
  return rows.map(({ account, relay, revision, devices, profile_at, attachments }) => ({
    id: account,
    wire: {
      ...{ account, home: relay, revision, devices, profile_at },
      attachment_bytes: attachments ?? 0,
    },
  }));
}

/** Lists the groups, closed ones too. */
export async function listGroups(tx: Reader, { from, limit }: Range): Promise<Owner[]> {
  const rows = await tx.all<GroupRow>(
    `SELECT group_id AS id, name, status, owner, member_count AS members, sequence
      FROM groups WHERE group_id >= ? ORDER BY group_id LIMIT ?`,
    from,
    limit,
  );
  return rows.map(({ id, name, status, owner, members, sequence }) => ({
    id,
    wire: { group_id: id, name: storedText(name), status, owner, members, sequence },
  }));
}

/** Lists the channels, closed ones too. */
export async function listChannels(tx: Reader, { from, limit }: Range): Promise<Owner[]> {
  const rows = await tx.all<ChannelRow>(
    `SELECT c.channel_id AS id, c.status, c.creator AS owner, c.revision, c.head,
        e.payload AS descriptor
      FROM channels c LEFT JOIN channel_events e
        ON e.channel_id = c.channel_id AND e.kind = 'descriptor' AND e.descriptor_rev = c.revision
      WHERE c.channel_id >= ? ORDER BY c.channel_id LIMIT ?`,
    from,
    limit,
  );
  return rows.map(({ id, status, owner, revision, head, descriptor }) => ({
    id,
    wire: { channel_id: id, name: nameOf(descriptor), status, owner, revision, sequence: head },
  }));
}

/** The name in a stored descriptor; `null` if there is none. */
function nameOf(descriptor: string | null): string | null {
  if (descriptor === null) return null;
  const { name } = JSON.parse(descriptor) as { readonly name?: unknown };
  return typeof name === 'string' ? name : null;
}
