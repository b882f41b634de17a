/** Pending messages to groups: not sent yet, or without the host's answer (05 §13.28). */
import type { GroupMessageEnvelope } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import type { Pending } from '../sync/outbox.ts';

/** A message without the host's answer, by group and order of writing (05 §13.28). */
export interface GroupOutboxRow {
  /** Sent unchanged at each attempt; replaced by another one after a conflict. */
  readonly envelope: GroupMessageEnvelope;
  /** Needed to seal the message anew for a later epoch. */
  readonly content: JsonObject;
}
export const groupOutbox = new Collection<GroupOutboxRow>('group-outbox');

/** A row of the outbox, with its key. */
export type PendingMessage = Pending<GroupOutboxRow>;

/** Whether a row is unchanged: another program may have sent it, or sealed it anew. */
export async function isStillPending(
  tx: StoreReader,
  { key, value }: PendingMessage,
): Promise<boolean> {
  const latest = await groupOutbox.get(tx, key);
  return latest?.envelope.message_id === value.envelope.message_id;
}

/** Removes a message from the outbox. @returns whether it was still waiting */
export async function dequeueMessage(tx: StoreWriter, pending: PendingMessage): Promise<boolean> {
  const isThere = await isStillPending(tx, pending);
  if (isThere) await groupOutbox.delete(tx, pending.key);
  return isThere;
}
