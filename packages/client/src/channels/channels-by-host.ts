/** Which hosts tell of which channels, over their WebSockets (02 §13, 06 §9.1). */
import type { AccountCore } from '../core.ts';
import { channelRows, shouldReadChannel } from './channel-rows.ts';

/** The channels of each host that are to be subscribed. */
export async function channelsByHost(core: AccountCore): Promise<Map<string, string[]>> {
  const hosts = new Map<string, string[]>();
  for (const row of await core.store.read((tx) => channelRows(tx))) {
    if (!shouldReadChannel(row)) continue;
    hosts.set(row.relay_id, [...(hosts.get(row.relay_id) ?? []), row.channel_id]);
  }
  return hosts;
}
