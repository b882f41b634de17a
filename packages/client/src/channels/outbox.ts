/**
 * What this device wrote and nobody confirmed yet. The exact signed object is kept before anything
 * of it leaves, until its fate is known (06 §10.4).
 */
import type {
  ChannelClose,
  ChannelDescriptor,
  ChannelPost,
  ChannelPostDelete,
  ChannelPostEdit,
} from '@posthouse/protocol';
import { isTemporary } from '../connect/backoff.ts';
import { ClientError, isRefusal } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

export type ChannelWrite =
  | { readonly write: 'create' | 'update'; readonly descriptor: ChannelDescriptor }
  | {
      readonly write: 'close';
      readonly close: ChannelClose;
      /** The final descriptor that the host makes of it. */
      readonly descriptor: ChannelDescriptor;
    }
  | { readonly write: 'post'; readonly post: ChannelPost }
  | (ChannelChangeWrite & {
      /** Sequence behind which its event is, if there is one. */
      readonly behind: number;
    });

type ChannelChangeWrite =
  | { readonly write: 'edit'; readonly edit: ChannelPostEdit }
  | { readonly write: 'delete'; readonly deletion: ChannelPostDelete };

/** Writes of descriptors, of which a channel has one at a time. */
export type DescriptorWrite = Extract<ChannelWrite, { readonly descriptor: ChannelDescriptor }>;

/** Writes of posts, edits and deletions. */
export type ContentWrite = Exclude<ChannelWrite, { readonly descriptor: unknown }>;

/** Writes of channels, in the order they were made. */
export const channelOutbox = new Collection<ChannelWrite>('channel-outbox');

export interface PendingWrite<W extends ChannelWrite = ChannelWrite> {
  readonly key: string;
  readonly channelId: string;
  readonly value: W;
}

/** Keeps a write behind those that wait already. */
export async function enqueueWrite<W extends ChannelWrite>(
  tx: StoreWriter,
  channelId: string,
  value: W,
): Promise<PendingWrite<W>> {
  const prefix = `${channelId}/`;
  const [last] = await channelOutbox.list(tx, { prefix, limit: 1, reverse: true });
  const number = last === undefined ? 1 : Number(last.key.slice(prefix.length)) + 1;
  const key = keyOf(channelId, number);
  await channelOutbox.put(tx, key, value);
  return { key, channelId, value };
}

export async function pendingWrites(tx: StoreReader, channelId: string): Promise<PendingWrite[]> {
  const rows = await channelOutbox.list(tx, { prefix: `${channelId}/` });
  return rows.map((row) => ({ ...row, channelId }));
}

export async function dequeueWrite(tx: StoreWriter, { key }: PendingWrite): Promise<void> {
  await channelOutbox.delete(tx, key);
}

/** Whether a write still waits. */
export async function isPending(tx: StoreReader, { key }: PendingWrite): Promise<boolean> {
  return (await channelOutbox.get(tx, key)) !== undefined;
}

export function isDescriptorWrite(kept: PendingWrite): kept is PendingWrite<DescriptorWrite> {
  return 'descriptor' in kept.value;
}

export function isContentWrite(kept: PendingWrite): kept is PendingWrite<ContentWrite> {
  return !isDescriptorWrite(kept);
}

/** Whether a failure says for good that a write was not carried out. */
export function isFinalRefusal(error: unknown): boolean {
  if (error instanceof ClientError && error.code === 'no_relay') return true;
  return isRefusal(error) && !isTemporary(error);
}
