/** Stored rows of messages, in both directions. */
import type { DeliveryStatus, RelayError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';

/**
 * The outcome of a timeline record:
 * - `applied`: it took effect, or is a message to show;
 * - `stored`: of an unknown type, stored without any effect;
 * - `held`: a message of an account this new device does not know yet;
 * - `refused`: invalid, not permitted, or in conflict.
 */
export type RecordOutcome = 'applied' | 'stored' | 'held' | 'refused';

/** The delivery status of a message this account sent, as far as this device knows. */
export type SendingStatus =
  /** Stored, and sealed when it is its turn and the home relay can be reached. */
  | 'waiting'
  /** Being sent to the relay, or the relay's answer was lost. */
  | 'sending'
  | DeliveryStatus['status']
  /** The relay refused it. */
  | 'rejected'
  /** Cancelled before it was sealed. */
  | 'cancelled';

export interface MessageRow {
  readonly message_id: string;
  readonly from: string;
  readonly from_device_id: string;
  readonly to: string;
  /** Unix seconds, as the sender wrote them. */
  readonly created_at: number;
  /** Digest of the complete envelope (04 §18.2); empty while there is none. */
  readonly digest: string;
  /** The business object; absent if it could not be decrypted. */
  readonly content?: JsonObject;
  readonly outcome: RecordOutcome;
  /** Why it was refused. */
  readonly reason?: string;
  /** Position in this device's own order of arrival. */
  readonly order: number;
  /** Unix seconds at which the relay that holds the record accepted it. */
  readonly accepted_at?: number;
  /** For messages this device sent. */
  readonly status?: SendingStatus;
  readonly error?: Pick<RelayError, 'code' | 'message'>;
}

const messages = new Collection<MessageRow>('messages');
/** Keys of messages by `order`, as text. */
const arrivals = new Collection<string>('arrivals');

/** The logical key of a message (04 §18.2). */
function messageKey({ from, message_id }: { from: string; message_id: string }): string {
  return `${from}/${message_id}`;
}

/** The digits of the largest safe integer, so that texts sort as numbers do. */
const orderDigits = 16;

function orderKey(order: number): string {
  return String(order).padStart(orderDigits, '0');
}

export function messageRow(
  tx: StoreReader,
  key: { readonly from: string; readonly message_id: string },
): Promise<MessageRow | undefined> {
  return messages.get(tx, messageKey(key));
}

/** Adds a message at the end of the order of arrival. */
export async function addMessage(
  tx: StoreWriter,
  row: Omit<MessageRow, 'order'>,
): Promise<MessageRow> {
  const [last] = await arrivals.list(tx, { limit: 1, reverse: true });
  const placed = { ...row, order: last === undefined ? 1 : Number(last.key) + 1 };
  await arrivals.put(tx, orderKey(placed.order), messageKey(row));
  await messages.put(tx, messageKey(row), placed);
  return placed;
}

/** Replaces a stored message. */
export async function updateMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await messages.put(tx, messageKey(row), row);
}

/** Replaces a stored message by one with another ID, at the same place in the order of arrival. */
export async function replaceMessage(
  tx: StoreWriter,
  replaced: MessageRow,
  row: MessageRow,
): Promise<void> {
  await messages.delete(tx, messageKey(replaced));
  await arrivals.put(tx, orderKey(row.order), messageKey(row));
  await messages.put(tx, messageKey(row), row);
}

/** Deletes a stored message. */
export async function removeMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await arrivals.delete(tx, orderKey(row.order));
  await messages.delete(tx, messageKey(row));
}

/** Held messages, by sender; limited, because any account may send them. */
const held = new Collection<string>('held');
const heldLimit = 1_000;

/** Whether another message can be held. */
export async function canHoldMessage(tx: StoreReader): Promise<boolean> {
  return (await held.list(tx, { limit: heldLimit })).length < heldLimit;
}

export async function holdMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await held.put(tx, messageKey(row), messageKey(row));
}

/** Removes and returns the held messages of an account, in order of arrival. */
export async function takeHeldMessages(tx: StoreWriter, account: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = [];
  for (const { key } of await held.list(tx, { prefix: `${account}/` })) {
    await held.delete(tx, key);
    const row = await messages.get(tx, key);
    if (row !== undefined) rows.push(row);
  }
  return rows.sort((a, b) => a.order - b.order);
}

/** Lists messages in order of arrival, after a position in it. */
export async function listMessages(
  tx: StoreReader,
  { after = 0, limit }: { readonly after?: number; readonly limit?: number } = {},
): Promise<MessageRow[]> {
  const range = { after: orderKey(after), ...(limit !== undefined && { limit }) };
  const found: MessageRow[] = [];
  for (const { value } of await arrivals.list(tx, range)) {
    const row = await messages.get(tx, value);
    if (row !== undefined) found.push(row);
  }
  return found;
}
