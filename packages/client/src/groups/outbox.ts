/** Messages to groups without the host's answer (05 §13.28). */
import type { GroupMessageEnvelope } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import type { Pending } from '../sync/outbox.ts';
import { storeOutcome } from '../sync/write-outcomes.ts';
import type { WriteOutcome } from '../sync/written-messages.ts';

/** A message without the host's answer, by group and order of writing (05 §13.28). */
export interface GroupOutboxRow {
  /** Absent in rows of an earlier version, which are sealed. */
  readonly message_id?: string;
  /** The ID that it had before it was sealed again. */
  readonly first_id?: string;
  /** Absent until it is the message's turn; then sent unchanged, and replaced after a conflict. */
  readonly envelope?: GroupMessageEnvelope;
  /** When the host said, before it was sent, that it was restored; Unix seconds, 0 for never. */
  readonly restoredAt?: number;
  /** Unix seconds at which it was written; absent in rows of an earlier version. */
  readonly created_at?: number;
  /** Needed to seal the message, also again for a later epoch. */
  readonly content: JsonObject;
}
export const groupOutbox = new Collection<GroupOutboxRow>('group-outbox');

/** A row of the outbox, with its key. */
export type PendingMessage = Pending<GroupOutboxRow>;

/** Returns the ID that a message has now. */
export function messageIdOf({ message_id, envelope }: GroupOutboxRow): string {
  return envelope?.message_id ?? (message_id as string);
}

/** Returns the ID that a message had when it was written. */
export function firstIdOf(row: GroupOutboxRow): string {
  return row.first_id ?? messageIdOf(row);
}

/** Whether a row is unchanged: another program may have sent it, or sealed it. */
export async function isStillPending(
  tx: StoreReader,
  { key, value }: PendingMessage,
): Promise<boolean> {
  const latest = await groupOutbox.get(tx, key);
  if (latest === undefined || messageIdOf(latest) !== messageIdOf(value)) return false;
  return latest.envelope?.device_signature === value.envelope?.device_signature;
}

/** Removes a message from the outbox and stores how it ended. @returns whether it was waiting */
export async function endMessage(
  tx: StoreWriter,
  groupId: string,
  { pending, ...outcome }: Omit<WriteOutcome, 'messageId'> & { readonly pending: PendingMessage },
): Promise<boolean> {
  const { key, value } = pending;
  const latest = await groupOutbox.get(tx, key);
  if (latest === undefined || firstIdOf(latest) !== firstIdOf(value)) return false;
  await groupOutbox.delete(tx, key);
  const messageId = messageIdOf(latest);
  const conversation = { kind: 'group', id: groupId } as const;
  const ids = [firstIdOf(value)];
  await storeOutcome(tx, conversation, { ...outcome, messageId, ids, pending });
  return true;
}
