import type { SubscriptionResync } from '../dispatch/module.ts';
import { readChannelHeads } from './subscription-store.ts';

/** Where timelines of channels end, for who may not have heard of it (06 §9.2). */
export const channelResync: SubscriptionResync = {
  kind: 'channel',
  notices: async (tx, channels) => {
    const heads = await readChannelHeads(tx, channels);
    return [...heads].map(([channel, head]) => ({ kind: 'channel-timeline', channel, head }));
  },
};
