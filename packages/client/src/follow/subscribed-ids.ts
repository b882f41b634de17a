/** Which groups and channels a connection to a host subscribes (02 §13, 05 §17.1, 06 §9.1). */
import { channelRows, shouldReadChannel } from '../channels/channel-rows.ts';
import type { AccountCore } from '../core.ts';
import { groupRows } from '../groups/group-rows.ts';
import { shouldReadGroup } from '../groups/timeline/read-group.ts';

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
