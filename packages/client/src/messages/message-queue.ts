/**
 * Messages without an answer, by conversation and order of writing (04 §15.1). A queued message is
 * sealed when it is its turn, and has a row in the outbox from then on.
 */
import type { Authorization } from '@posthouse/protocol';
import { Collection } from '../store/collection.ts';
import type { Store, StoreReader, StoreWriter } from '../store/index.ts';
import { NewestRows } from '../sync/newest-rows.ts';
import { enqueue, type Pending, pendingOf } from '../sync/outbox.ts';
import { type MessageRow, messageRow } from './message-rows.ts';
import { outbox, type Purpose } from './outbox.ts';

export interface QueueRow {
  readonly message_id: string;
  /** The ID that it had before it was sealed again. */
  readonly first_id?: string;
  readonly purpose: Purpose;
  /** Of a consent or task; a direct message uses the contact's grant of its turn. */
  readonly authorization?: Authorization;
  /** For a self-delivery: whether this device gets a key box too. */
  readonly includeThisDevice?: boolean;
  /** For a self-delivery: IDs of the only devices that get key boxes. */
  readonly devices?: readonly string[];
}
export const messageQueue = new Collection<QueueRow>('message-queue');

/** A queued message with its key. */
export type QueuedMessage = Pending<QueueRow>;

/** IDs of messages that were sealed again, by the ID that they had before; of the newest ones. */
const replacements = new NewestRows<string>('message-replacements', 10_000);

/** Whether messages that an earlier version sent without a queue have their places. */
const adoptions = new Collection<true>('message-queue-adopted');

/** Returns the ID under which {@link Sender} tells the answer of a message. */
export function firstId({ message_id, first_id = message_id }: QueueRow): string {
  return first_id;
}

/** Appends a message to its conversation. @returns its place */
export async function queueMessage(
  tx: StoreWriter,
  to: string,
  value: QueueRow,
): Promise<QueuedMessage> {
  await adoptOutbox(tx);
  return { key: await enqueue(tx, messageQueue, { id: to, value }), value };
}

/** Returns the message of a conversation whose turn it is. */
export async function headOf(tx: StoreReader, to: string): Promise<QueuedMessage | undefined> {
  const [head] = await messageQueue.list(tx, { prefix: `${to}/`, limit: 1 });
  return head;
}

/** Finds the place of a message that has no answer yet. */
export async function placeOf(
  tx: StoreReader,
  { to, message_id, queued: key }: Pick<MessageRow, 'to' | 'message_id' | 'queued'>,
): Promise<QueuedMessage | undefined> {
  if (key !== undefined) {
    const value = await messageQueue.get(tx, key);
    return value?.message_id === message_id ? { key, value } : undefined;
  }
  const rows = await pendingOf(tx, messageQueue, to);
  return rows.find(({ value }) => value.message_id === message_id);
}

/** Whether a message has its place still. */
export async function isQueued(
  tx: StoreReader,
  { key, value }: Pending<Pick<QueueRow, 'message_id'>>,
): Promise<boolean> {
  return (await messageQueue.get(tx, key))?.message_id === value.message_id;
}

/** Lists the conversations in which messages wait. */
export async function waitingConversations(tx: StoreReader): Promise<string[]> {
  const rows = await messageQueue.list(tx);
  return [...new Set(rows.map(({ key }) => key.slice(0, key.lastIndexOf('/'))))];
}

/** Counts the messages whose outcome is not known. */
export async function countUnsettled(tx: StoreReader): Promise<number> {
  const sealed = await outbox.list(tx);
  const queued = await messageQueue.list(tx);
  return queued.length + sealed.filter(({ value }) => value.place === undefined).length;
}

/** Remembers the ID of a message that was sealed again (04 §15.1). */
export async function rememberReplaced(
  tx: StoreWriter,
  { replaced, by }: { readonly replaced: string; readonly by: string },
): Promise<void> {
  await replacements.put(tx, replaced, by);
}

/** Returns the ID that a message of this device has now. */
export async function currentId(tx: StoreReader, messageId: string): Promise<string> {
  return (await replacements.get(tx, messageId)) ?? messageId;
}

/** Reads a message by the ID that it has, or had before it was sealed again. */
export async function currentRow(
  tx: StoreReader,
  { from, message_id }: { readonly from: string; readonly message_id: string },
): Promise<MessageRow | undefined> {
  return (
    (await messageRow(tx, { from, message_id })) ??
    (await messageRow(tx, { from, message_id: await currentId(tx, message_id) }))
  );
}

/** Whether messages of an earlier version have their places. */
async function isAdopted(tx: StoreReader): Promise<boolean> {
  return (await adoptions.get(tx, 'outbox')) !== undefined;
}

/** Gives messages of an earlier version their places, if they have none. */
export async function ensureAdopted(store: Store): Promise<void> {
  if (!(await store.read(isAdopted))) await store.write(adoptOutbox);
}

/** Gives messages of an earlier version, which have no answer yet, their places: by age. */
async function adoptOutbox(tx: StoreWriter): Promise<void> {
  if (await isAdopted(tx)) return;
  await adoptions.put(tx, 'outbox', true);
  const found: { readonly id: string; readonly order: number }[] = [];
  for (const { key: id, value } of await outbox.list(tx)) {
    if (value.accepted) continue;
    const known = await messageRow(tx, value.params.envelope);
    found.push({ id, order: known?.order ?? 0 });
  }
  for (const { id } of found.sort((a, b) => a.order - b.order)) {
    const row = await outbox.get(tx, id);
    if (row === undefined) continue;
    const { envelope, authorization } = row.params;
    const value = {
      message_id: id,
      purpose: row.purpose,
      ...(authorization !== undefined && { authorization }),
    };
    const place = await enqueue(tx, messageQueue, { id: envelope.to, value });
    await outbox.put(tx, id, { ...row, place });
  }
}
