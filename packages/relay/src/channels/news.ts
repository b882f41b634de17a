import type { SubscribedNews } from '../subject.ts';
import { readChannelHeads } from './subscription-store.ts';

/** Where timelines of channels end, for who may not have heard of it (06 §9.2). */
export const channelNews: SubscribedNews = {
  kind: 'channel',
  tell: async (tx, channels) => {
    const heads = await readChannelHeads(tx, channels);
    return [...heads].map(([channel, head]) => ({ kind: 'channel-timeline', channel, head }));
  },
};
