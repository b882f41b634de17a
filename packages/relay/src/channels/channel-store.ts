/** All SQL of a channel's own row: owner, moderators, status, revision and head. */
import { ProtocolError } from '@posthouse/protocol';
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { BatchWriter, Reader, Row, Statement, SyncWriter, Writer } from '../storage/types.ts';

/** A channel as stored. */
export interface StoredChannel {
  readonly channelId: string;
  readonly creator: string;
  readonly moderators: readonly string[];
  readonly status: 'active' | 'closed';
  /** Revision of the current descriptor. */
  readonly revision: number;
  /** The highest sequence ever assigned. */
  readonly head: number;
  /** Latest deadline of content accepted under the current revision, Unix seconds. */
  readonly neededUntil: number;
  /** Bytes of all stored events, withheld ones included. */
  readonly storedBytes: number;
}

interface ChannelRow extends Row {
  creator: string;
  moderators: string;
  status: 'active' | 'closed';
  revision: number;
  head: number;
  needed_until: number;
  stored_bytes: number;
}

const columns = `c.creator, c.moderators, c.status, c.revision, c.head, c.needed_until,
  c.stored_bytes`;

export async function readChannel(
  tx: Reader,
  channelId: string,
): Promise<StoredChannel | undefined> {
  const row = await tx.get<ChannelRow>(
    `SELECT ${columns} FROM channels c WHERE c.channel_id = ?`,
    channelId,
  );
  return row && channelOf(channelId, row);
}

function channelOf(channelId: string, row: ChannelRow): StoredChannel {
  const { creator, status, revision, head } = row;
  const { needed_until: neededUntil, stored_bytes: storedBytes } = row;
  const moderators = JSON.parse(row.moderators) as string[];
  return { channelId, creator, moderators, status, revision, head, neededUntil, storedBytes };
}

/** Locks the channels that are open until the end of a batch's transaction, in order; by ID. */
export async function lockChannels(
  tx: BatchWriter,
  channelIds: readonly string[],
): Promise<ReadonlyMap<string, StoredChannel>> {
  const rows = await tx.all<ChannelRow & { channel_id: string }>(
    `SELECT c.channel_id, ${columns} FROM channels c
      WHERE c.channel_id = ANY (?::text[]) AND c.status = 'active'
      ORDER BY c.channel_id FOR UPDATE`,
    channelIds,
  );
  return new Map(rows.map((row) => [row.channel_id, channelOf(row.channel_id, row)]));
}

/** @throws ProtocolError `not_found` */
export async function requireChannel(tx: Reader, channelId: string): Promise<StoredChannel> {
  return (await readChannel(tx, channelId)) ?? noChannel();
}

function noChannel(): never {
  throw new ProtocolError('not_found', 'this relay hosts no such channel');
}

/** The post that an account published under a message ID. */
interface PublishedPost {
  readonly sequence: number;
  /** Digest of the accepted object. */
  readonly digest: string;
}

/** The account that posts and its message ID. */
export interface PostKey {
  readonly account: string;
  readonly messageId: string;
}

/** A channel with the post that an account published in it under a message ID. */
interface Publishing {
  readonly channel: StoredChannel;
  readonly published: PublishedPost | undefined;
}

interface PublishingRow extends ChannelRow {
  sequence: number | null;
  digest: string | null;
}

/**
 * Reads a channel with the post that an account published in it under a message ID (06 §8.7), in
 * one statement: each post needs it twice.
 *
 * @throws ProtocolError `not_found`
 */
export async function requirePublishing(
  tx: Reader,
  channelId: string,
  key: PostKey,
): Promise<Publishing> {
  const publishing = publishingOf(channelId, await tx.get(...publishingStatement(channelId, key)));
  return publishing ?? noChannel();
}

/** As {@link requirePublishing}, for an append; `undefined` if there is no such channel. */
export function findPublishing(
  tx: SyncWriter,
  channelId: string,
  key: PostKey,
): Publishing | undefined {
  return publishingOf(channelId, tx.get(...publishingStatement(channelId, key)));
}

function publishingStatement(channelId: string, { account, messageId }: PostKey): Statement {
  return [
    `SELECT ${columns}, p.sequence, p.digest FROM channels c
      LEFT JOIN channel_posts p
        ON p.channel_id = c.channel_id AND p.account = ? AND p.message_id = ?
      WHERE c.channel_id = ?`,
    account,
    messageId,
    channelId,
  ];
}

function publishingOf(channelId: string, row: PublishingRow | undefined): Publishing | undefined {
  if (row === undefined) return undefined;
  const { sequence, digest } = row;
  const published = sequence === null || digest === null ? undefined : { sequence, digest };
  return { channel: channelOf(channelId, row), published };
}

/** Reads the heads of channels, by channel ID; channels that are not hosted here are missing. */
export async function readChannelHeads(
  tx: Reader,
  channelIds: readonly string[],
): Promise<Map<string, number>> {
  const heads = new Map<string, number>();
  for (const chunk of chunks(channelIds)) {
    const rows = await tx.all<{ channel_id: string; head: number }>(
      `SELECT channel_id, head FROM channels WHERE channel_id IN (${placeholders(chunk)})`,
      ...chunk,
    );
    for (const { channel_id, head } of rows) heads.set(channel_id, head);
  }
  return heads;
}

/** Tells whether an account has created at least `count` channels here, closed ones included. */
export async function hasCreated(tx: Reader, creator: string, count: number): Promise<boolean> {
  const last = await tx.get(
    'SELECT channel_id FROM channels WHERE creator = ? LIMIT 1 OFFSET ?',
    creator,
    count - 1,
  );
  return last !== undefined;
}

export async function insertChannel(tx: Writer, channel: StoredChannel): Promise<void> {
  await tx.run(
    `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until,
        stored_bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    channel.channelId,
    channel.creator,
    JSON.stringify(channel.moderators),
    channel.status,
    channel.revision,
    channel.head,
    channel.neededUntil,
    channel.storedBytes,
  );
}

/** Moves the head to a post, which needs the current descriptor until `neededUntil`, and counts it. */
export function moveHead(
  channelId: string,
  { head, neededUntil, storedBytes }: Pick<StoredChannel, 'head' | 'neededUntil' | 'storedBytes'>,
): Statement {
  return [
    'UPDATE channels SET head = ?, needed_until = ?, stored_bytes = ? WHERE channel_id = ?',
    head,
    neededUntil,
    storedBytes,
    channelId,
  ];
}

/** Counts bytes of events that are stored no more. The caller holds the channel. */
export async function freeBytes(tx: Writer, channelId: string, bytes: number): Promise<void> {
  await tx.run(
    'UPDATE channels SET stored_bytes = stored_bytes - ? WHERE channel_id = ?',
    bytes,
    channelId,
  );
}

/**
 * Stores the changed members of a channel and counts an event; its creator never changes.
 *
 * @param added bytes of the event
 */
export async function updateChannel(
  tx: Writer,
  channel: StoredChannel,
  added: number,
): Promise<void> {
  await tx.run(
    `UPDATE channels SET moderators = ?, status = ?, revision = ?, head = ?, needed_until = ?,
        stored_bytes = stored_bytes + ?
      WHERE channel_id = ?`,
    JSON.stringify(channel.moderators),
    channel.status,
    channel.revision,
    channel.head,
    channel.neededUntil,
    added,
    channel.channelId,
  );
}
