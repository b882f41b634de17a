/** Messages as this device keeps them, in both directions. */
import type { DeliveryStatus, RelayError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';

/**
 * What became of a record of the timeline:
 * - `applied`: it took effect, or is a message to show;
 * - `stored`: of an unknown type, kept without any effect;
 * - `held`: a message of an account this new device does not know yet;
 * - `refused`: invalid, not permitted, or in conflict.
 */
export type RecordOutcome = 'applied' | 'stored' | 'held' | 'refused';

/** What became of a message this account sent, as far as this device knows. */
export type SendingStatus =
  /** On its way to the relay, or the relay's answer was lost. */
  | 'sending'
  | DeliveryStatus['status']
  /** The relay did not take it. */
  | 'rejected';

export interface MessageRow {
  readonly message_id: string;
  readonly from: string;
  readonly from_device_id: string;
  readonly to: string;
  /** Unix seconds, as its sender wrote. */
  readonly created_at: number;
  /** Digest of the complete envelope (04 §18.2). */
  readonly digest: string;
  /** The business object; absent where it could not be opened. */
  readonly content?: JsonObject;
  readonly outcome: RecordOutcome;
  /** Why it was refused. */
  readonly reason?: string;
  /** Where it stands in this device's own order of arrival. */
  readonly order: number;
  /** Unix seconds at which the relay that holds the record accepted it. */
  readonly accepted_at?: number;
  /** For messages this device sent. */
  readonly status?: SendingStatus;
  readonly error?: Pick<RelayError, 'code' | 'message'>;
}

const messages = new Collection<MessageRow>('messages');
/** Order of arrival: `order` as text, to the key of the message. */
const arrivals = new Collection<string>('arrivals');

/** The logical key of a message (04 §18.2). */
function messageKey({ from, message_id }: { from: string; message_id: string }): string {
  return `${from}/${message_id}`;
}

/** As many digits as the largest safe integer has, so that texts sort as numbers do. */
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

/** Changes what is known of a message that is there. */
export async function updateMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await messages.put(tx, messageKey(row), row);
}

/** Forgets a message that never left this device. */
export async function removeMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await arrivals.delete(tx, orderKey(row.order));
  await messages.delete(tx, messageKey(row));
}

/** Messages put aside, by sender; only so many, because anybody may write. */
const held = new Collection<string>('held');
const heldLimit = 1_000;

/** Whether there is room to put another message aside. */
export async function canHoldMessage(tx: StoreReader): Promise<boolean> {
  return (await held.list(tx, { limit: heldLimit })).length < heldLimit;
}

export async function holdMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await held.put(tx, messageKey(row), messageKey(row));
}

/** Takes the messages of an account that were put aside, in order of arrival. */
export async function takeHeldMessages(tx: StoreWriter, account: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = [];
  for (const { key } of await held.list(tx, { prefix: `${account}/` })) {
    await held.delete(tx, key);
    const row = await messages.get(tx, key);
    if (row !== undefined) rows.push(row);
  }
  return rows.sort((a, b) => a.order - b.order);
}

/** Messages in order of arrival, after a place in it. */
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
