import { checkChannelContentSize, checkChannelPost, ProtocolError } from '@posthouse/protocol';
import { writeAdmitted } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import { requireRoom } from '../../usage/index.ts';
import { appendContent, nextSequence, timelineNotice } from '../append.ts';
import { channelPosts } from '../append-post.ts';
import { requirePublishing } from '../channel-store.ts';
import { insertPost } from '../post-store.ts';
import { checkMayWrite } from '../write-access.ts';

/** `channel.post` (06 §8.7). */
export const channelPost: Handler<'channel.post'> = async (context, call) => {
  const { limits, network, policy } = context;
  const { params: post } = call;
  const session = call.session;
  checkChannelPost(network, post);
  const text = checkChannelContentSize(post);
  const { channel_id: channelId } = post;
  const key = { account: session.account, messageId: post.message_id };
  const own = digest(text);
  return await writeAdmitted(context, {
    ...{ session, aggregates: `channel:${channelId}`, signed: post },
    admit: async (tx, { caller: { signer } }) => {
      const { channel, published } = await requirePublishing(tx, channelId, key);
      // A repeat is answered even if the account lost the right or the channel was closed (06
      // §7.4).
      if (published === undefined) checkMayWrite(channel, session.account);
      else if (published.digest !== own) {
        throw new ProtocolError(
          'state_conflict',
          'the message ID belongs to another post: use a new one',
        );
      }
      return { signer, channel, published };
    },
    ask: async ({ right: { published } }) => {
      if (!policy.isOn || published !== undefined) return;
      const asked = { ask: 'post', account: session.account, address: call.address } as const;
      await policy.ask({ ...asked, channel: channelId, post }, session.homeRelay);
    },
    append: async ({ caller }): Promise<HandlerResult | undefined> => {
      const now = context.clock.now();
      const keepUntil = now + limits.channelTimelineRetention;
      const mostBytes = limits.channelStoredBytes;
      const verified = { mostBytes, channelId, key, caller, text, digest: own, now, keepUntil };
      const sequence = await context.storage.append(channelPosts, verified);
      return sequence === undefined
        ? undefined
        : { result: { sequence }, notices: [timelineNotice(channelId, sequence)] };
    },
    work: async (tx, { signer, channel, published }, acceptedAt): Promise<HandlerResult> => {
      if (published !== undefined) return { result: { sequence: published.sequence } };
      requireRoom(channel.storedBytes, limits.channelStoredBytes, 'the channel');
      const sequence = nextSequence(channel);
      const keepUntil = acceptedAt + limits.channelTimelineRetention;
      await tx.run(...insertPost(channelId, { ...key, sequence, digest: own, keepUntil }));
      const event = { kind: 'post', sequence, acceptedAt, keepUntil, payload: text } as const;
      const notices = await appendContent(tx, channel, { event, signer, neededUntil: keepUntil });
      return { result: { sequence }, notices };
    },
  });
};
