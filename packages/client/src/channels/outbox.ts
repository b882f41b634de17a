/**
 * What this device wrote to channels and the host has not confirmed. The exact signed object is
 * stored before the request leaves, until its outcome is known (06 §10.4).
 */
import type {
  ChannelClose,
  ChannelDescriptor,
  ChannelPost,
  ChannelPostDelete,
  ChannelPostEdit,
} from '@posthouse/protocol';
import { leavesOpen } from '../connect/backoff.ts';
import { ClientError, isRefusal } from '../errors.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { recordStatus } from '../sync/message-status.ts';
import { enqueue, type Pending } from '../sync/outbox.ts';
import { storeOutcome } from '../sync/write-outcomes.ts';
import { forgetEnded, type WriteOutcome } from '../sync/written-messages.ts';
import { channelRow, isSameDescriptor } from './channel-rows.ts';

export type ChannelWrite =
  | { readonly write: 'create' | 'update'; readonly descriptor: ChannelDescriptor }
  | {
      readonly write: 'close';
      readonly close: ChannelClose;
      /** The final descriptor that the host derives from it. */
      readonly descriptor: ChannelDescriptor;
    }
  | ({ readonly write: 'post'; readonly post: ChannelPost } & Unsent)
  | (ChannelChangeWrite &
      Unsent & {
        /** The write's event, if there is one, has a higher sequence. Stores have this name. */
        readonly behind: number;
      });

interface Unsent {
  /** Unix seconds at which it was written; absent in rows of an earlier version. */
  readonly created_at?: number;
  /** Until its first request; absent in rows of an earlier version, which may have been sent. */
  readonly waiting?: true;
  /** When its first request was about to leave, Unix seconds. */
  readonly sent_at?: number;
}

type ChannelChangeWrite =
  | { readonly write: 'edit'; readonly edit: ChannelPostEdit }
  | { readonly write: 'delete'; readonly deletion: ChannelPostDelete };

/** A write of the descriptor; a channel has at most one under way. */
export type DescriptorWrite = Extract<ChannelWrite, { readonly descriptor: ChannelDescriptor }>;

/** A post, an edit or a deletion. */
export type ContentWrite = Exclude<ChannelWrite, { readonly descriptor: unknown }>;

/** Writes without the host's answer, by channel and order of writing. */
export const channelOutbox = new Collection<ChannelWrite>('channel-outbox');

/** A row of the outbox, with its key. */
export type PendingWrite<W extends ChannelWrite = ChannelWrite> = Pending<W>;

/** Appends a write to the channel's outbox. */
export async function enqueueWrite<W extends ChannelWrite>(
  tx: StoreWriter,
  channelId: string,
  value: W,
): Promise<PendingWrite<W>> {
  return { key: await enqueue(tx, channelOutbox, { id: channelId, value }), value };
}

/** Returns what identifies a write: a post's ID, else the signature, which no two writes share. */
export function writeIdOf(value: ContentWrite): string {
  if (value.write === 'post') return value.post.message_id;
  return (value.write === 'edit' ? value.edit : value.deletion).device_signature;
}

/** Returns how the event about a post, edit or deletion names it. */
export function statusSubject(value: ContentWrite) {
  if (value.write === 'post') return { messageId: value.post.message_id };
  return { write: value.write };
}

/** Removes a post, edit or deletion from the outbox, and stores how it ended. */
export async function endWrite(
  tx: StoreWriter,
  channelId: string,
  {
    pending,
    ...outcome
  }: Omit<WriteOutcome, 'messageId'> & {
    readonly pending: PendingWrite<ContentWrite>;
  },
): Promise<void> {
  // Another program of this device may have ended it.
  if (!(await dequeueWrite(tx, pending))) return;
  const conversation = { kind: 'channel', id: channelId } as const;
  const { value } = pending;
  if (value.write === 'post') {
    const messageId = value.post.message_id;
    await storeOutcome(tx, conversation, { ...outcome, messageId, ids: [messageId], pending });
    const { span } = (await channelRow(tx, channelId)) ?? {};
    // It was read before its answer came.
    const isRead = outcome.sequence !== undefined && outcome.sequence <= (span?.position ?? -1);
    if (isRead) await forgetEnded(tx, channelId, messageId);
    return;
  }
  const { status, error } = outcome;
  const ended = { status, ...(error !== undefined && { error }) };
  await recordStatus(tx, { conversation, write: value.write, ...ended });
}

/** Removes a write from the outbox. @returns whether it was there */
export async function dequeueWrite(tx: StoreWriter, pending: PendingWrite): Promise<boolean> {
  const isLeft = await isPending(tx, pending);
  if (isLeft) await channelOutbox.delete(tx, pending.key);
  return isLeft;
}

/** Whether a write is still in the outbox. */
export async function isPending(tx: StoreReader, { key, value }: PendingWrite): Promise<boolean> {
  const latest = await channelOutbox.get(tx, key);
  return latest !== undefined && isSameWrite(latest, value);
}

/** Whether two rows are the same write, sent or not. */
export function isSameWrite(a: ChannelWrite, b: ChannelWrite): boolean {
  if ('descriptor' in a) return 'descriptor' in b && isSameDescriptor(a.descriptor, b.descriptor);
  return !('descriptor' in b) && writeIdOf(a) === writeIdOf(b);
}

export function isDescriptorWrite(pending: PendingWrite): pending is PendingWrite<DescriptorWrite> {
  return 'descriptor' in pending.value;
}

export function isContentWrite(pending: PendingWrite): pending is PendingWrite<ContentWrite> {
  return !isDescriptorWrite(pending);
}

/** Whether an error proves that a write was not and will not be carried out. */
export function isFinalRefusal(error: unknown): boolean {
  if (error instanceof ClientError && error.code === 'no_relay') return true;
  return isRefusal(error) && !leavesOpen(error);
}
