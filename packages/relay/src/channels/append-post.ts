/** An accepted post as one small write (06 §8.7). */
import { mayWriteChannel } from '@posthouse/protocol';
import { isStillCaller } from '../accounts/index.ts';
import type { AppendKind } from '../storage/types.ts';
import { findPublishing, moveHead } from './channel-store.ts';
import { eventStatement, keepCertificate } from './event-store.ts';
import { postBatch } from './post-batch.ts';
import { insertPost } from './post-store.ts';
import type { VerifiedPost } from './verified-post.ts';

/** Declines a repeat, and a post that has to be refused. Its output is the sequence. */
export const channelPosts: AppendKind<VerifiedPost, number> = {
  name: 'channels.post',
  aggregates: ({ channelId }) => [`channel:${channelId}`],
  apply(tx, post) {
    const { channelId, key, caller, text, digest, now, keepUntil } = post;
    if (!isStillCaller(tx, caller, now)) return undefined;
    const { channel, published } = findPublishing(tx, channelId, key) ?? {};
    if (channel === undefined || published !== undefined || channel.status !== 'active') {
      return undefined;
    }
    if (!mayWriteChannel(channel, key.account)) return undefined;
    if (channel.head >= Number.MAX_SAFE_INTEGER) return undefined;
    if (channel.storedBytes >= post.mostBytes) return undefined;
    const { signer } = caller;
    const { revision: descriptorRev } = channel;
    const sequence = channel.head + 1;
    const event = { kind: 'post', sequence, acceptedAt: now, keepUntil, payload: text } as const;
    tx.run(...insertPost(channelId, { ...key, sequence, digest, keepUntil }));
    tx.run(...keepCertificate(channelId, signer));
    tx.run(...eventStatement(channelId, { event: { ...event, descriptorRev }, signer }));
    const neededUntil = Math.max(channel.neededUntil, keepUntil);
    const storedBytes = channel.storedBytes + Buffer.byteLength(text);
    tx.run(...moveHead(channelId, { head: sequence, neededUntil, storedBytes }));
    return sequence;
  },
  batch: postBatch,
};
