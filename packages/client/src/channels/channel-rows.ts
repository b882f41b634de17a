/**
 * Stored channels: follow state, position, verified descriptors. The changes of one page are
 * written in one transaction with the new position, row by row: the cost of a page depends on the
 * page, not on the channel.
 */
import { type ChannelDescriptor, newerDescriptor } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { hideConversation } from '../conversations/conversation-rows.ts';
import { ClientError } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** Whether this device follows a channel. */
export type FollowState =
  /** The creation was sent; the host's answer is not known yet. */
  | 'creating'
  /** Read with every `sync`. */
  | 'followed'
  /** No longer read; the verified descriptor stays, so that a rollback is detected. */
  | 'left';

/** The part of a timeline that was read without interruption. */
export interface ChannelSpan {
  /** Everything readable from this sequence on is stored; 0 means from the creation on. */
  readonly first: number;
  /** Sequence up to which every event is processed; -1 before the creation. */
  readonly position: number;
}

/** A channel, by its ID. */
export interface ChannelRow {
  readonly channel_id: string;
  /** Relay ID of the host; the channel's ID is bound to it. */
  readonly relay_id: string;
  readonly standing: FollowState;
  /** The verified descriptor of the highest revision seen. */
  readonly descriptor: ChannelDescriptor;
  /** Absent before the first read. */
  readonly span?: ChannelSpan;
  /** Sequence of the closing descriptor, once it was read; later events do not count. */
  readonly closed_at?: number;
  /** Unix milliseconds at which reading stopped with more left to read. */
  readonly leftAt?: number;
  /** Whether a rollback was reported; until an event is applied that was not known. */
  readonly rollback?: true;
  /** When the host last said that it was restored (02 §11.2). */
  readonly restored?: {
    /** Unix seconds. */
    readonly at: number;
    /** Unix milliseconds at which this was looked into; absent for what it said first. */
    readonly readAt?: number;
  };
  /** Unix milliseconds at which a person followed or unfollowed it last, on any own device. */
  readonly changedAt?: number;
  /** The highest head named by a hint, until a read that began later is complete (06 §9.2). */
  readonly hinted_head?: number;
}
export const channels = new Collection<ChannelRow>('channels');

/** Verified descriptors by revision. A stored one is never replaced (06 §4). */
const descriptors = new Collection<ChannelDescriptor>('channel-descriptors');

export async function channelRow(
  tx: StoreReader,
  channelId: string,
): Promise<ChannelRow | undefined> {
  return await channels.get(tx, channelId);
}

/** Reads a channel's row. @throws ClientError `unknown_channel` */
export async function requireChannel(tx: StoreReader, channelId: string): Promise<ChannelRow> {
  const row = await channels.get(tx, channelId);
  if (row !== undefined) return row;
  throw new ClientError('unknown_channel', `${channelId} is not known here: follow it first`);
}

export async function channelRows(tx: StoreReader): Promise<ChannelRow[]> {
  return (await channels.list(tx)).map(({ value }) => value);
}

export async function putChannel(tx: StoreWriter, row: ChannelRow): Promise<void> {
  await channels.put(tx, row.channel_id, row);
  if (row.standing === 'left') await hideConversation(tx, { kind: 'channel', id: row.channel_id });
}

export async function removeChannel(tx: StoreWriter, channelId: string): Promise<void> {
  await channels.delete(tx, channelId);
}

/** Whether a sync or a hint reads the channel. */
export function shouldReadChannel({ standing, closed_at }: ChannelRow): boolean {
  return standing === 'followed' && closed_at === undefined;
}

/**
 * Stores the head that a hint named, until a read is complete; the position does not move
 * (06 §9.2).
 *
 * @returns whether there is something to read
 */
export async function storeChannelHint(
  tx: StoreWriter,
  channelId: string,
  head: number,
): Promise<boolean> {
  const row = await channels.get(tx, channelId);
  if (row === undefined || !shouldReadChannel(row) || head <= (row.span?.position ?? -1))
    return false;
  if (head > (row.hinted_head ?? -1)) await putChannel(tx, { ...row, hinted_head: head });
  return true;
}

/** Reads the stored verified descriptors of some revisions. */
export async function knownDescriptors(
  tx: StoreReader,
  channelId: string,
  revisions: Iterable<number>,
): Promise<Map<number, ChannelDescriptor>> {
  const found = new Map<number, ChannelDescriptor>();
  for (const revision of new Set(revisions)) {
    const descriptor = await descriptors.get(tx, keyOf(channelId, revision));
    if (descriptor !== undefined) found.set(revision, descriptor);
  }
  return found;
}

/** Stores verified descriptors. A revision that is stored already is not replaced (06 §4). */
export async function putDescriptors(
  tx: StoreWriter,
  found: Iterable<ChannelDescriptor>,
): Promise<void> {
  for (const descriptor of found) {
    const key = keyOf(descriptor.channel_id, descriptor.revision);
    if ((await descriptors.get(tx, key)) === undefined) await descriptors.put(tx, key, descriptor);
  }
}

/** Whether two descriptors are equal in canonical form. */
export function isSameDescriptor(a: ChannelDescriptor, b: ChannelDescriptor): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/**
 * Stores a verified descriptor, as the current one if its revision is higher (06 §4).
 * @returns the row afterwards
 */
export async function adoptDescriptor(
  tx: StoreWriter,
  row: ChannelRow,
  candidate: ChannelDescriptor,
): Promise<ChannelRow> {
  await putDescriptors(tx, [candidate]);
  const descriptor = newerDescriptor(row.descriptor, candidate);
  if (descriptor === row.descriptor) return row;
  const adopted = { ...row, descriptor };
  await putChannel(tx, adopted);
  return adopted;
}
