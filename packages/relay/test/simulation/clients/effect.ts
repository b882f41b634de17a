/** Whether a call took effect whose repeat is refused: a client would read it from its group. */
import { managementHash } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { network } from '../../support/modules.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';

/** The statement that finds what a call created, and the members of its parameters to find it by. */
const created: Readonly<Record<string, readonly [sql: string, ...members: string[]]>> = {
  'group.create': ['SELECT 1 FROM groups WHERE group_id = ?', 'group_id'],
  'group.invite.create': ['SELECT 1 FROM group_invites WHERE invite_id = ?', 'invite_id'],
  'group.application.submit': [
    'SELECT 1 FROM group_applications WHERE group_id = ? AND account = ?',
    ...['group_id', 'account'],
  ],
  'channel.create': ['SELECT 1 FROM channels WHERE channel_id = ?', 'channel_id'],
  'channel.update': [
    'SELECT 1 FROM channels WHERE channel_id = ? AND revision = ?',
    ...['channel_id', 'revision'],
  ],
  'channel.post.delete': [
    "SELECT 1 FROM channel_posts WHERE channel_id = ? AND sequence = ? AND status = 'deleted'",
    ...['channel_id', 'target_sequence'],
  ],
};

/** Looks into the database of the relay that may have carried out the call. */
export function tookEffect(relay: SimulatedRelay, method: string, params: JsonObject): boolean {
  const found = created[method];
  if (found !== undefined) {
    const [sql, ...members] = found;
    const object = (method === 'group.create' ? params.create : params) as JsonObject;
    const values = members.map((name) => object[name] as string | number);
    return relay.disk.query(sql, ...values).length > 0;
  }
  if (!method.startsWith('group.')) return false;
  const body = (params.approval ?? params) as JsonObject;
  const [group] = relay.disk.query<{ chain_head: string }>(
    'SELECT chain_head FROM groups WHERE group_id = ?',
    String(body.group_id),
  );
  return group?.chain_head === managementHash(network, body as never);
}
