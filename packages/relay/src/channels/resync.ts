import type { SubscriptionResync } from '../dispatch/module.ts';
import { readChannelHeads } from './channel-store.ts';

/** Reads the heads of channels, for clients that may have missed a notice (06 §9.2). */
export const channelResync: SubscriptionResync = {
  kind: 'channel',
  notices: async (tx, channels) => {
    const heads = await readChannelHeads(tx, channels);
    return [...heads].map(([channel, head]) => ({ kind: 'channel-timeline', channel, head }));
  },
};
