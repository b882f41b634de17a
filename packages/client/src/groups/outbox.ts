/** Messages to groups that wait to be sent, or for the host's answer (05 §13.28). */
import type { GroupMessageEnvelope } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf } from '../store/row-keys.ts';

/** A group message whose fate is not known yet, by its group and place (05 §13.28). */
export interface GroupOutboxRow {
  /** Sent unchanged, as often as it takes; after a conflict another one takes its place. */
  readonly envelope: GroupMessageEnvelope;
  /** To be sealed anew for a later epoch. */
  readonly content: JsonObject;
}
export const groupOutbox = new Collection<GroupOutboxRow>('group-outbox');

/** A row of the outbox with its key. */
export interface PendingMessage {
  readonly key: string;
  readonly value: GroupOutboxRow;
}

/** What waits to be sent to a group, in the order in which it was written. */
export async function pendingMessages(tx: StoreReader, groupId: string): Promise<PendingMessage[]> {
  return await groupOutbox.list(tx, { prefix: `${groupId}/` });
}

/** Puts a message behind all that wait. @returns its key */
export async function enqueueMessage(tx: StoreWriter, row: GroupOutboxRow): Promise<string> {
  const prefix = `${row.envelope.group_id}/`;
  const [last] = await groupOutbox.list(tx, { prefix, limit: 1, reverse: true });
  const place = last === undefined ? 0 : Number(last.key.slice(prefix.length)) + 1;
  const key = keyOf(row.envelope.group_id, place);
  await groupOutbox.put(tx, key, row);
  return key;
}

/** Whether a row is still what it was: another program may have sent it, or sealed it anew. */
export async function isStillPending(
  tx: StoreReader,
  { key, value }: PendingMessage,
): Promise<boolean> {
  const latest = await groupOutbox.get(tx, key);
  return latest?.envelope.message_id === value.envelope.message_id;
}

/** Lets go of a message that needs no more sending. @returns whether it was still waiting */
export async function dequeueMessage(tx: StoreWriter, waiting: PendingMessage): Promise<boolean> {
  const isThere = await isStillPending(tx, waiting);
  if (isThere) await groupOutbox.delete(tx, waiting.key);
  return isThere;
}
