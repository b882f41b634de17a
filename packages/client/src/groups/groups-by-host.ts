/** Which hosts tell of which groups, over their WebSockets (02 §13, 05 §13.29, §17.1). */
import type { AccountCore } from '../core.ts';
import { groupRows } from './group-rows.ts';
import { shouldReadGroup } from './timeline/read-group.ts';

/** The groups of each host that are to be subscribed. */
export async function groupsByHost(core: AccountCore): Promise<Map<string, string[]>> {
  const hosts = new Map<string, string[]>();
  for (const row of await core.store.read((tx) => groupRows(tx))) {
    if (row.standing !== 'member' || !shouldReadGroup(row)) continue;
    hosts.set(row.relay_id, [...(hosts.get(row.relay_id) ?? []), row.group_id]);
  }
  return hosts;
}
