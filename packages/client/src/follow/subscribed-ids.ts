/** Which groups and channels of a host are followed and subscribed (02 §13, 05 §17.1, 06 §9.1). */
import { channelRows, shouldReadChannel } from '../channels/channel-rows.ts';
import type { AccountCore } from '../core.ts';
import { groupRows } from '../groups/group-rows.ts';
import { shouldReadGroup } from '../groups/timeline/read-group.ts';
import { formerRelaysToRead } from '../messages/former-relays.ts';

/** IDs to subscribe at one host. */
export interface SubscribedIds {
  readonly groups: readonly string[];
  readonly channels: readonly string[];
}

/** Lists the groups and channels of a host whose hints are of use. */
export async function idsToSubscribe(
  { store }: AccountCore,
  relayId: string,
): Promise<SubscribedIds> {
  const groups = await store.read((tx) => groupRows(tx));
  const channels = await store.read((tx) => channelRows(tx));
  return {
    groups: groups
      .filter((row) => row.relay_id === relayId && row.standing === 'member')
      .filter(shouldReadGroup)
      .map(({ group_id }) => group_id),
    channels: channels
      .filter((row) => row.relay_id === relayId && shouldReadChannel(row))
      .map(({ channel_id }) => channel_id),
  };
}

/** Lists the IDs to read by host, and former home relays until they are read. */
export async function idsToRead(core: AccountCore): Promise<Map<string, ReadonlySet<string>>> {
  const former = await formerRelaysToRead(core, { isDue: false });
  return await core.store.read(async (tx) => {
    const hosts = new Map<string, Set<string>>([...former].map((each) => [each, new Set()]));
    const add = (relayId: string, id: string) => {
      hosts.set(relayId, (hosts.get(relayId) ?? new Set()).add(id));
    };
    for (const row of await groupRows(tx))
      if (shouldReadGroup(row)) add(row.relay_id, row.group_id);
    for (const row of await channelRows(tx))
      if (shouldReadChannel(row)) add(row.relay_id, row.channel_id);
    return hosts;
  });
}
