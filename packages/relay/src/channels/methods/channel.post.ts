import {
  type ChannelPost,
  checkChannelContentSize,
  checkChannelPost,
  ProtocolError,
} from '@posthouse/protocol';
import { requireCaller, verifyOwnSignature } from '../../accounts/index.ts';
import type { DeviceSession, Handler } from '../../call.ts';
import { digest } from '../../digest.ts';
import { requireChannel } from '../channel-store.ts';
import { insertPost, readPublished } from '../post-store.ts';
import { appendContent, nextSequence } from '../timeline.ts';
import { checkMayWrite } from '../writing.ts';

/** `channel.post` (06 §8.7). */
export const channelPost: Handler<ChannelPost> = async (context, call) => {
  const { clock, limits, network, storage } = context;
  const { params: post } = call;
  const session = call.session as DeviceSession;
  checkChannelPost(network, post);
  const text = checkChannelContentSize(post);
  await verifyOwnSignature(context, post, { session, now: clock.now() });
  const { channel_id: channelId } = post;
  const key = { account: session.account, messageId: post.message_id };
  const own = digest(text);
  return await storage.write(`channel:${channelId}`, async (tx) => {
    const acceptedAt = clock.now();
    const { signer } = await requireCaller(tx, session, acceptedAt);
    const channel = await requireChannel(tx, channelId);
    // A repeat is answered whatever the account may do now, and after closure too (06 §7.4).
    const published = await readPublished(tx, channelId, key);
    if (published !== undefined) {
      if (published.digest === own) return { result: { sequence: published.sequence } };
      throw new ProtocolError('state_conflict', 'the message ID is of another post');
    }
    checkMayWrite(channel, session.account);
    const sequence = nextSequence(channel);
    const keepUntil = acceptedAt + limits.channelTimelineRetention;
    await insertPost(tx, channelId, { ...key, sequence, digest: own, keepUntil });
    const event = { kind: 'post', sequence, acceptedAt, keepUntil, payload: text } as const;
    const notices = await appendContent(tx, channel, { event, signer, neededUntil: keepUntil });
    return { result: { sequence }, notices };
  });
};
