/** All SQL of a channel's own row: who may write, and where its timeline ends. */
import { ProtocolError } from '@posthouse/protocol';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** A channel as the rules of writing need it. */
export interface StoredChannel {
  readonly channelId: string;
  readonly creator: string;
  readonly moderators: readonly string[];
  readonly status: 'active' | 'closed';
  /** Of the current descriptor. */
  readonly revision: number;
  /** The highest sequence ever assigned. */
  readonly head: number;
  /** When the last content of the current revision is gone, Unix seconds. */
  readonly neededUntil: number;
}

interface ChannelRow extends Row {
  creator: string;
  moderators: string;
  status: 'active' | 'closed';
  revision: number;
  head: number;
  needed_until: number;
}

export async function readChannel(
  tx: Reader,
  channelId: string,
): Promise<StoredChannel | undefined> {
  const row = await tx.get<ChannelRow>(
    `SELECT creator, moderators, status, revision, head, needed_until FROM channels
      WHERE channel_id = ?`,
    channelId,
  );
  if (row === undefined) return undefined;
  const { creator, moderators, status, revision, head, needed_until: neededUntil } = row;
  const parsed = JSON.parse(moderators) as string[];
  return { channelId, creator, moderators: parsed, status, revision, head, neededUntil };
}

/** @throws ProtocolError `not_found` */
export async function requireChannel(tx: Reader, channelId: string): Promise<StoredChannel> {
  const channel = await readChannel(tx, channelId);
  if (channel !== undefined) return channel;
  throw new ProtocolError('not_found', 'this relay hosts no such channel');
}

/** Whether an account has created so many channels here, closed ones included. */
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
    `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
    channel.channelId,
    channel.creator,
    JSON.stringify(channel.moderators),
    channel.status,
    channel.revision,
    channel.head,
    channel.neededUntil,
  );
}

/** Puts what a write changed of a channel in place; its creator never does. */
export async function updateChannel(tx: Writer, channel: StoredChannel): Promise<void> {
  await tx.run(
    `UPDATE channels SET moderators = ?, status = ?, revision = ?, head = ?, needed_until = ?
      WHERE channel_id = ?`,
    JSON.stringify(channel.moderators),
    channel.status,
    channel.revision,
    channel.head,
    channel.neededUntil,
    channel.channelId,
  );
}
