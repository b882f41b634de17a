/**
 * What this device wrote to groups and channels, as long as it is not in the stored timeline: what
 * has no answer yet, what was accepted and not read yet, and what failed.
 */
import type { MessageContent } from '../conversations/message-content.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';
import { NewestRows } from './newest-rows.ts';
import type { Pending } from './outbox.ts';

/** The end of a message to a group or channel. */
export interface WriteOutcome {
  /** The ID under which it was sent; another one after it was sealed again. */
  readonly messageId: string;
  readonly status: 'target_accepted' | 'rejected' | 'failed' | 'cancelled';
  /** Position that the host gave an accepted message; its claim until it is read. */
  readonly sequence?: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A message to a group, or a post, that this device wrote and that its timeline does not show. */
export interface WrittenMessage extends MessageContent {
  /** As `post` returned it. */
  readonly messageId: string;
  readonly from: string;
  /** Unix seconds at which it was written; absent if an earlier version stored it. */
  readonly createdAt?: number;
  /** `target_accepted` until the timeline is read up to it. */
  readonly status: 'waiting' | 'sending' | Exclude<WriteOutcome['status'], 'cancelled'>;
  /** The host's claim, once it accepted the message. */
  readonly sequence?: number;
  /** Why it was rejected or failed. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** How a message ended, with its row of the outbox. */
interface EndedMessage extends WriteOutcome {
  /** The ID that it had when it was written. */
  readonly firstId: string;
  readonly key: string;
  readonly value: object;
}

/** By conversation and last message ID. */
const ended = new NewestRows<EndedMessage>('ended-messages', 1_000);

/** Keys of the outbox, by conversation and the message ID that `post` returned. */
export const outboxKeys = new Collection<string>('outbox-keys');

/** Finds a waiting message by the ID that it had when it was written. */
export async function pendingById<T>(
  tx: StoreReader,
  outbox: Collection<T>,
  id: string,
): Promise<Pending<T> | undefined> {
  const key = await outboxKeys.get(tx, id);
  const value = key === undefined ? undefined : await outbox.get(tx, key);
  return key === undefined || value === undefined ? undefined : { key, value };
}

/** Keeps a message that ended until the timeline has it, or removes it if it was cancelled. */
export async function keepEnded(
  tx: StoreWriter,
  conversationId: string,
  message: WriteOutcome & Partial<EndedMessage> & Pick<EndedMessage, 'firstId'>,
): Promise<void> {
  const key = keyOf(conversationId, message.messageId);
  await outboxKeys.delete(tx, keyOf(conversationId, message.firstId));
  if (message.status === 'cancelled') await ended.delete(tx, key);
  else await ended.put(tx, key, message as EndedMessage);
}

/** Removes a message that the timeline has. */
export async function forgetEnded(
  tx: StoreWriter,
  conversationId: string,
  messageId: string,
): Promise<void> {
  await ended.delete(tx, keyOf(conversationId, messageId));
}

/**
 * Lists what was written to a group or channel, in the order of writing: rows of the outbox, each
 * with the end that is known.
 */
export async function writtenTo<T extends object>(
  tx: StoreReader,
  outbox: Collection<T>,
  conversationId: string,
): Promise<(Partial<EndedMessage> & { readonly value: T })[]> {
  const range = { prefix: `${conversationId}/` };
  const over = (await ended.list(tx, range)).map(({ value }) => value);
  const all = [...over, ...(await outbox.list(tx, range))];
  all.sort((a, b) => (a.key < b.key ? -1 : 1));
  return all as (Partial<EndedMessage> & { readonly value: T })[];
}

/** Picks what is known of an ended message. */
export function endOf({ status, sequence, error }: Partial<WriteOutcome>) {
  return {
    ...(status !== undefined && { status }),
    ...(sequence !== undefined && { sequence }),
    ...(error !== undefined && { error }),
  };
}
