import { checkChannelContentSize, checkChannelPostDelete } from '@posthouse/protocol';
import { writeAdmitted } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { appendContent, nextSequence } from '../append.ts';
import { retentionJobName } from '../jobs.ts';
import { hidePost } from '../post-store.ts';
import { afterRemoval, deletePostEvents } from '../retention-store.ts';
import { requireStoredPost, requireWriter } from '../write-access.ts';

/** `channel.post.delete` (06 §8.9). */
export const channelPostDelete: Handler<'channel.post.delete'> = async (context, call) => {
  const { jobs, limits, network } = context;
  const { params: deletion } = call;
  const session = call.session;
  checkChannelPostDelete(network, deletion);
  const text = checkChannelContentSize(deletion);
  const { channel_id: channelId, target_sequence: target } = deletion;
  const outcome = await writeAdmitted(context, {
    ...{ session, aggregates: `channel:${channelId}`, signed: deletion },
    admit: (tx, calling) => requireWriter(tx, channelId, calling),
    work: async (tx, { caller, channel }, acceptedAt) => {
      // A withheld post too: followers that have it must learn of the deletion.
      const post = await requireStoredPost(tx, channelId, target);
      const sequence = nextSequence(channel);
      const keepUntil = acceptedAt + limits.channelTimelineRetention;
      // The deletion is stored at least as long as the post would have been (06 §7.5).
      const clearAfter = Math.max(keepUntil, post.keep_until);
      await hidePost(tx, channelId, { sequence: target, clearAfter });
      const removed = await deletePostEvents(tx, channelId, [post]);
      const kept = { acceptedAt, keepUntil, clearAfter };
      const event = { kind: 'delete', sequence, target, payload: text, ...kept } as const;
      const { signer } = caller;
      const notices = await appendContent(tx, channel, { event, signer, neededUntil: clearAfter });
      await afterRemoval(tx, channelId, removed);
      return { result: null, notices };
    },
  });
  jobs.wake(retentionJobName);
  return outcome;
};
