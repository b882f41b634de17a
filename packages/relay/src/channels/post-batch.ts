/** Posts, many in few statements (decision record 0027). */
import { mayWriteChannel } from '@posthouse/protocol';
import { findStillCallers } from '../accounts/index.ts';
import type { AppendBatch, BatchWriter, Row } from '../storage/types.ts';
import { lockChannels, type StoredChannel } from './channel-store.ts';
import type { VerifiedPost } from './verified-post.ts';

/** Bytes of a post's rows next to its text and its certificate. */
const otherBytes = 512;

/**
 * Stores posts as the single form does. The rows of their channels are locked first, in order: so
 * the statements after that one see what batches of other processes wrote in these channels.
 */
export const postBatch: AppendBatch<VerifiedPost, number> = {
  bytes: ({ text, caller }) =>
    otherBytes + Buffer.byteLength(text) + caller.signer.certificate.length,
  async write(tx, posts) {
    const [channels, callers, unpublished] = await Promise.all([
      lockChannels(tx, [...new Set(posts.map(({ channelId }) => channelId))]),
      findStillCallers(tx, posts),
      findUnpublished(tx, posts),
    ]);
    const heads = new Map<string, StoredChannel>(channels);
    const keys = new Set<string>();
    const accepted = new Map<VerifiedPost, Accepted>();
    for (const [position, post] of posts.entries()) {
      const { channelId, key, keepUntil } = post;
      const channel = heads.get(channelId);
      const hasCertificate = unpublished.get(position);
      const name = `${channelId} ${key.account} ${key.messageId}`;
      if (channel === undefined || hasCertificate === undefined || keys.has(name)) continue;
      if (!callers.has(position) || !mayWriteChannel(channel, key.account)) continue;
      if (channel.head >= Number.MAX_SAFE_INTEGER) continue;
      if (channel.storedBytes >= post.mostBytes) continue;
      keys.add(name);
      const neededUntil = Math.max(channel.neededUntil, keepUntil);
      const storedBytes = channel.storedBytes + Buffer.byteLength(post.text);
      const moved = { ...channel, head: channel.head + 1, neededUntil, storedBytes };
      heads.set(channelId, moved);
      accepted.set(post, { post, hasCertificate, channel: moved, sequence: moved.head });
    }
    if (accepted.size > 0) await insert(tx, [...accepted.values()]);
    return posts.map((post) => accepted.get(post)?.sequence);
  },
};

/**
 * Finds those posts, by position, whose account has published nothing under their message ID in the
 * channel, and whether the certificate of each one's signer is stored. Each column is a query of its
 * own, which is planned for one input.
 */
async function findUnpublished(
  tx: BatchWriter,
  posts: readonly VerifiedPost[],
): Promise<ReadonlyMap<number, boolean>> {
  const rows = await tx.all<UnpublishedRow>(
    `SELECT i.position,
        (SELECT p.sequence FROM channel_posts p WHERE p.channel_id = i.channel_id
          AND p.account = i.account AND p.message_id = i.message_id) AS published,
        (SELECT 1 FROM channel_certificates c
          WHERE c.channel_id = i.channel_id AND c.device_id = i.device_id) AS certificate
      FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) WITH ORDINALITY
        AS i (channel_id, account, message_id, device_id, position)`,
    posts.map(({ channelId }) => channelId),
    posts.map(({ key }) => key.account),
    posts.map(({ key }) => key.messageId),
    posts.map(({ caller }) => caller.signer.deviceId),
  );
  const unpublished = rows.filter(({ published }) => published === null);
  return new Map(
    unpublished.map(({ position, certificate }) => [position - 1, certificate !== null]),
  );
}

interface UnpublishedRow extends Row {
  position: number;
  /** Sequence of the post that was published. */
  published: number | null;
  certificate: number | null;
}

/** A post with its place in the timeline. */
interface Accepted {
  readonly post: VerifiedPost;
  readonly hasCertificate: boolean;
  /** The channel after the post. */
  readonly channel: StoredChannel;
  readonly sequence: number;
}

async function insert(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  await Promise.all([
    insertPosts(tx, accepted),
    keepCertificates(tx, accepted),
    moveHeads(tx, accepted),
  ]);
}

async function insertPosts(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  await tx.run(
    `WITH new AS MATERIALIZED (
        SELECT * FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::bigint[],
            ?::bigint[], ?::bigint[], ?::text[], ?::bigint[], ?::text[])
          AS p (channel_id, sequence, account, message_id, digest, descriptor_rev, accepted_at,
            keep_until, signer_device_id, bytes, payload)
      ), posts AS (
        INSERT INTO channel_posts (channel_id, sequence, account, message_id, digest, status,
            keep_until, clear_after)
          SELECT channel_id, sequence, account, message_id, digest, 'readable', keep_until,
              keep_until
            FROM new
      )
      INSERT INTO channel_events (channel_id, sequence, kind, descriptor_rev, accepted_at,
          keep_until, signer_device_id, bytes, payload)
        SELECT channel_id, sequence, 'post', descriptor_rev, accepted_at, keep_until,
            signer_device_id, bytes, payload
          FROM new`,
    accepted.map(({ post }) => post.channelId),
    accepted.map(({ sequence }) => sequence),
    accepted.map(({ post }) => post.key.account),
    accepted.map(({ post }) => post.key.messageId),
    accepted.map(({ post }) => post.digest),
    accepted.map(({ channel }) => channel.revision),
    accepted.map(({ post }) => post.now),
    accepted.map(({ post }) => post.keepUntil),
    accepted.map(({ post }) => post.caller.signer.deviceId),
    accepted.map(({ post }) => Buffer.byteLength(post.text)),
    accepted.map(({ post }) => post.text),
  );
}

/** Stores the certificates of devices that have none: any version verifies (06 §5.2). */
async function keepCertificates(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  const signers = new Map<string, VerifiedPost>();
  for (const { post, hasCertificate } of accepted) {
    if (!hasCertificate) signers.set(`${post.channelId} ${post.caller.deviceId}`, post);
  }
  if (signers.size === 0) return;
  const posts = [...signers.values()];
  await tx.run(
    `INSERT INTO channel_certificates (channel_id, device_id, certificate)
      SELECT * FROM unnest(?::text[], ?::text[], ?::text[])
      ON CONFLICT (channel_id, device_id) DO NOTHING`,
    posts.map((post) => post.channelId),
    posts.map((post) => post.caller.signer.deviceId),
    posts.map((post) => post.caller.signer.certificate),
  );
}

/** Moves the head of each channel to its last post, and counts the bytes: the rows are locked. */
async function moveHeads(tx: BatchWriter, accepted: readonly Accepted[]): Promise<void> {
  const last = new Map(accepted.map(({ channel }) => [channel.channelId, channel]));
  const channels = [...last.values()];
  await tx.run(
    `UPDATE channels SET head = i.head, needed_until = i.needed_until,
        stored_bytes = i.stored_bytes
      FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[])
        AS i (channel_id, head, needed_until, stored_bytes)
      WHERE channels.channel_id = i.channel_id`,
    channels.map(({ channelId }) => channelId),
    channels.map(({ head }) => head),
    channels.map(({ neededUntil }) => neededUntil),
    channels.map(({ storedBytes }) => storedBytes),
  );
}
