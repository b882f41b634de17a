/** Which hosts tell of which groups, over their WebSockets (02 §13, 05 §13.29, §17.1). */
import type { RelayConnection } from '../connect/connection.ts';
import type { Link } from '../connect/link.ts';
import type { AccountCore } from '../core.ts';
import { isClientError, isRefusal } from '../errors.ts';
import { groupRows } from './rows.ts';
import { isReadable } from './sync.ts';

/** The groups of each host that are to be subscribed. */
export async function groupsByHost(core: AccountCore): Promise<Map<string, string[]>> {
  const hosts = new Map<string, string[]>();
  for (const row of await core.store.read((tx) => groupRows(tx))) {
    if (row.standing !== 'member' || !isReadable(row)) continue;
    hosts.set(row.relay_id, [...(hosts.get(row.relay_id) ?? []), row.group_id]);
  }
  return hosts;
}

/** A text that differs wherever the groups do. */
export function sameGroupsKey(hosts: ReadonlyMap<string, readonly string[]>): string {
  return JSON.stringify([...hosts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Subscribes the groups of one host on the connection's present link. Those the host refuses are
 * left out, those over its limit are read without hints; over HTTPS there are no hints at all.
 *
 * @returns the link that was subscribed
 */
export async function subscribeGroups(
  connection: RelayConnection,
  { groupIds, signal }: { readonly groupIds: readonly string[]; readonly signal: AbortSignal },
): Promise<Link> {
  const link = await connection.link(signal);
  if (link.channel.kind !== 'websocket') return link;
  const { limits } = await connection.call('relay.info', {}, { signal });
  let wanted = groupIds.slice(0, limits.max_group_subscriptions ?? 0);
  for (;;) {
    try {
      await connection.call('group.subscribe', { group_ids: wanted }, { signal });
      return link;
    } catch (error) {
      const refused = refusedGroups(error);
      const left = wanted.filter((id) => !refused.has(id));
      // Unreadable groups show by themselves when they are read.
      if (left.length === wanted.length) {
        if (!isRefusal(error, 'bad_request', 'not_found', 'forbidden')) throw error;
        return link;
      }
      wanted = left;
    }
  }
}

function refusedGroups(error: unknown): ReadonlySet<unknown> {
  if (!isClientError(error) || !isRefusal(error, 'not_found', 'forbidden')) return new Set();
  const ids = error.data?.group_ids;
  return new Set(Array.isArray(ids) ? ids : []);
}
