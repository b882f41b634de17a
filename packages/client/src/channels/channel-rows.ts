/**
 * Channels as this device keeps them: which there are, how far each is read, verified descriptors.
 * What one page changes is written in one transaction with the position behind it, row by row: what
 * a page costs depends on the page, not on the channel.
 */
import { type ChannelDescriptor, newerDescriptor } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { ClientError } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** How this device stands to a channel. */
export type FollowState =
  /** The creation left; whether the host took it is not known yet. */
  | 'creating'
  /** Read with every synchronisation. */
  | 'followed'
  /** Not read any more; what was verified of its descriptor stays, so that nothing rolls back. */
  | 'left';

/** The part of a timeline that was read without a break. */
export interface ChannelSpan {
  /** Everything readable from this sequence on is here; 0 is everything from the creation on. */
  readonly first: number;
  /** Sequence up to which every event is completely processed; -1 before the creation. */
  readonly position: number;
}

/** One channel, by its ID. */
export interface ChannelRow {
  readonly channel_id: string;
  /** Relay ID of the host; the channel's ID is bound to it. */
  readonly relay_id: string;
  readonly standing: FollowState;
  /** The verified descriptor of the highest revision seen. */
  readonly descriptor: ChannelDescriptor;
  /** Absent before the first read. */
  readonly span?: ChannelSpan;
  /** Sequence of the closing descriptor, once it was read; nothing behind it counts. */
  readonly closed_at?: number;
  /** Unix milliseconds at which reading stopped though there was more. */
  readonly leftAt?: number;
  /** The highest head a hint named, until a read that began later was complete (06 §9.2). */
  readonly hinted_head?: number;
}
export const channels = new Collection<ChannelRow>('channels');

/** Verified descriptors by revision. What is here is never replaced (06 §4). */
const descriptors = new Collection<ChannelDescriptor>('channel-descriptors');

export async function channelRow(
  tx: StoreReader,
  channelId: string,
): Promise<ChannelRow | undefined> {
  return await channels.get(tx, channelId);
}

/** @throws ClientError `unknown_channel` */
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
}

export async function removeChannel(tx: StoreWriter, channelId: string): Promise<void> {
  await channels.delete(tx, channelId);
}

/** Whether a hint or a synchronisation is a reason to read the channel. */
export function shouldReadChannel({ standing, closed_at }: ChannelRow): boolean {
  return standing === 'followed' && closed_at === undefined;
}

/**
 * Notes that a host said there is something to read. The need stays until a read was complete; the
 * position is not touched (06 §9.2).
 *
 * @returns whether there is
 */
export async function noteChannelHint(
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

/** Verified descriptors of some revisions, as far as they are here. */
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

/** Keeps verified descriptors. One whose revision is here already changes nothing (06 §4). */
export async function putDescriptors(
  tx: StoreWriter,
  found: Iterable<ChannelDescriptor>,
): Promise<void> {
  for (const descriptor of found) {
    const key = keyOf(descriptor.channel_id, descriptor.revision);
    if ((await descriptors.get(tx, key)) === undefined) await descriptors.put(tx, key, descriptor);
  }
}

/** Whether two descriptors are the same statement. */
export function isSameDescriptor(a: ChannelDescriptor, b: ChannelDescriptor): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/**
 * Takes a verified descriptor over as the current one, where its revision is higher than what is
 * saved (06 §4).
 *
 * @returns the row as it is now
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
