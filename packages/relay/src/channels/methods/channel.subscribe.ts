import { checkChannelSubscription, ProtocolError } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { readChannelHeads } from '../channel-store.ts';

/**
 * `channel.subscribe` (06 §9.1, 02 §13). Any device session may subscribe any channel, closed or
 * not.
 */
export const channelSubscribe: Handler<'channel.subscribe'> = async (context, call) => {
  const { blocks, limits, storage } = context;
  checkChannelSubscription(call.params);
  const { channel_ids: wanted } = call.params;
  const request = {
    kind: 'channel',
    ids: wanted,
    limit: limits.channelSubscriptions,
    perAccount: limits.subscriptionsPerAccount,
    total: limits.subscriptions,
  } as const;
  // Over HTTP the method does not exist.
  await call.connection?.setSubscriptions(request, async () => {
    const heads = await storage.read((tx) => readChannelHeads(tx, wanted));
    const refused = wanted.filter((id) => !heads.has(id) || blocks.hasChannel(id));
    if (refused.length === 0) return heads;
    const data = { channel_ids: refused };
    throw new ProtocolError('not_found', 'not every channel can be subscribed', { data });
  });
  return { result: null };
};
