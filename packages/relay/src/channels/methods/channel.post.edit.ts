import {
  checkChannelContentSize,
  checkChannelPostEdit,
  ProtocolError,
  reducePost,
} from '@posthouse/protocol';
import { writeAdmitted } from '../../accounts/index.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import { requireRoom } from '../../usage/index.ts';
import { appendContent, nextSequence } from '../append.ts';
import { readPostState, setPostState } from '../post-store.ts';
import { requireReadablePost, requireWriter } from '../write-access.ts';

/** `channel.post.edit` (06 §8.8). */
export const channelPostEdit: Handler<'channel.post.edit'> = async (context, call) => {
  const { limits, network, policy, storage } = context;
  const { params: edit } = call;
  const session = call.session;
  checkChannelPostEdit(network, edit);
  const text = checkChannelContentSize(edit);
  const { channel_id: channelId, target_sequence: target } = edit;
  return await writeAdmitted(context, {
    ...{ session, aggregates: `channel:${channelId}`, signed: edit },
    admit: (tx, calling) => requireWriter(tx, channelId, calling),
    ask: async () => {
      if (!policy.isOn) return;
      const isRepeat = await storage.read(async (tx) => {
        const post = await requireReadablePost(tx, channelId, target);
        const before = await readPostState(tx, channelId, post);
        return reducePost(before, edit) === before;
      });
      if (isRepeat) return;
      const asked = { ask: 'post', account: session.account, address: call.address } as const;
      await policy.ask({ ...asked, channel: channelId, post: edit }, session.homeRelay);
    },
    work: async (tx, { caller, channel }, acceptedAt): Promise<HandlerResult> => {
      const post = await requireReadablePost(tx, channelId, target);
      const before = await readPostState(tx, channelId, post);
      const after = reducePost(before, edit);
      if (after === before) return { result: null };
      // Not canonical, because the text is never compared: sorting would take most of an edit's
      // time.
      const state = JSON.stringify(after);
      if (Buffer.byteLength(state) > limits.channelPostBytes) {
        throw new ProtocolError('rate_limited', 'the post would grow too large');
      }
      requireRoom(channel.storedBytes, limits.channelStoredBytes, 'the channel');
      const sequence = nextSequence(channel);
      await setPostState(tx, channelId, { sequence: target, state });
      const keepUntil = acceptedAt + limits.channelTimelineRetention;
      const kept = { acceptedAt, keepUntil, payload: text };
      const event = { kind: 'edit', sequence, target, ...kept } as const;
      const { signer } = caller;
      // An edit is readable with its post and removed with it (06 §7.5).
      const neededUntil = post.keep_until;
      const notices = await appendContent(tx, channel, { event, signer, neededUntil });
      return { result: null, notices };
    },
  });
};
