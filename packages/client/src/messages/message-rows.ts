/** Stored rows of messages, in both directions. */
import type { DeliveryStatus, RelayError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import {
  type ConversationKey,
  type ConversationOwner,
  hideMessage,
  messagePrefix,
  showMessage,
  shownMessages,
} from '../conversations/conversation-rows.ts';
import { type ListOptions, rangeOf } from '../conversations/list-options.ts';
import { unixSeconds } from '../environment.ts';
import { isOwnDeviceType } from '../own-devices/object-types.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { keyOf, positionKey } from '../store/row-keys.ts';

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
  /** Its key in the queue; absent in rows of an earlier version. */
  readonly queued?: string;
  /** Own device that handed it over; until it is read from a relay, its signature is not verified. */
  readonly handedOverBy?: string;
}

const messages = new Collection<MessageRow>('messages');
/** Keys of the messages to show, by `order`. */
const arrivals = new Collection<string>('arrivals');

export { arrivals as messageArrivals };

/** The highest `order`: key `last`; the one that an earlier message was given last: key `earlier`. */
const orders = new Collection<number>('message-order');
/** Messages to show that are not sent yet, by recipient and `order`. */
const unsent = new Collection<true>('unsent-messages');

/** Whether a message of this device has no answer yet. */
export function isUnsent({ status }: MessageRow): boolean {
  return status === 'waiting' || status === 'sending';
}

/** The logical key of a message (04 §18.2). */
function messageKey({ from, message_id }: { from: string; message_id: string }): string {
  return `${from}/${message_id}`;
}

/** Whether a person sees the message: not refused, held, or an object of another kind. */
export function isShown({ outcome, content, status }: MessageRow): boolean {
  if (outcome === 'stored') return !isOwnDeviceType(content?.$type);
  if (status === 'cancelled') return false;
  return outcome === 'applied' && String(content?.$type).endsWith('.message.direct');
}

/** Returns the conversation that a message belongs to. */
function conversationOf(account: string, { from, to }: MessageRow): ConversationKey {
  return { kind: 'person', id: from === account ? to : from };
}

export function messageRow(
  tx: StoreReader,
  key: { readonly from: string; readonly message_id: string },
): Promise<MessageRow | undefined> {
  return messages.get(tx, messageKey(key));
}

/** Values of `order` for each second: messages of an earlier time find their places between others. */
const ordersPerSecond = 1_000_000;

/** Returns the first `order` of a message's second, at most that of the present. */
function firstOrder({ clock }: ConversationOwner, row: Omit<MessageRow, 'order'>): number {
  const { created_at, accepted_at: time = created_at } = row;
  return Math.max(0, Math.min(time, unixSeconds(clock))) * ordersPerSecond;
}

/** Adds a message at the end of the order of arrival; a stored one moves there. */
export async function addMessage(
  core: ConversationOwner,
  tx: StoreWriter,
  row: Omit<MessageRow, 'order'>,
): Promise<MessageRow> {
  const order = Math.max((await lastOrder(tx)) + 1, firstOrder(core, row));
  await orders.put(tx, 'last', order);
  const placed: MessageRow = { ...row, order };
  await messages.put(tx, messageKey(row), placed);
  if (isShown(placed)) {
    await arrivals.put(tx, positionKey(order), messageKey(row));
    await showMessage(core, tx, placedMessage(core, placed));
    await noteUnsent(tx, placed);
  }
  return placed;
}

/**
 * Adds a message of an earlier time as read, at its place by time. Of messages of one second, each
 * comes before those that were added earlier: they are handed over newest first. What an earlier
 * version stored has no times in its order, and comes before.
 */
export async function addEarlierMessage(
  core: ConversationOwner,
  tx: StoreWriter,
  row: Omit<MessageRow, 'order'>,
): Promise<void> {
  let order = firstOrder(core, row);
  // Many of one second are not searched for their place one after another.
  const before = (await orders.get(tx, 'earlier')) ?? 0;
  if (before < order && order - before < ordersPerSecond) order = before;
  for (let taken = true; taken && order > 0; ) {
    order -= 1;
    taken = (await arrivals.get(tx, positionKey(order))) !== undefined;
  }
  const placed: MessageRow = { ...row, order };
  await orders.put(tx, 'earlier', order);
  await orders.put(tx, 'last', Math.max(order, await lastOrder(tx)));
  await messages.put(tx, messageKey(row), placed);
  await arrivals.put(tx, positionKey(order), messageKey(row));
  await showMessage(core, tx, placedMessage(core, placed), { isRead: true });
}

/** Stores without conversations have no row of the last order, and an arrival of each message. */
async function lastOrder(tx: StoreReader): Promise<number> {
  const last = await orders.get(tx, 'last');
  if (last !== undefined) return last;
  const [arrival] = await arrivals.list(tx, { limit: 1, reverse: true });
  return Number(arrival?.key ?? 0);
}

function placedMessage({ account }: Pick<ConversationOwner, 'account'>, row: MessageRow) {
  const { from, message_id, order } = row;
  const position = positionKey(order);
  return { ...conversationOf(account, row), position, from, message_id, time: timeOf(row) };
}

const timeOf = ({ created_at, accepted_at = created_at }: MessageRow) => accepted_at;

/** Replaces a stored message by a later state of it; a cancelled message is not shown any more. */
export async function updateMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await messages.put(tx, messageKey(row), row);
  if (row.status === 'cancelled') await hideRow(tx, { kind: 'person', id: row.to }, row);
  else if (isShown(row)) await noteUnsent(tx, row);
}

/** Only messages that this device sends have a status; their conversation is the recipient's. */
async function noteUnsent(tx: StoreWriter, row: MessageRow): Promise<void> {
  const key = keyOf(row.to, row.order);
  if (isUnsent(row)) await unsent.put(tx, key, true);
  else if (row.status !== undefined) await unsent.delete(tx, key);
}

async function hideRow(tx: StoreWriter, key: ConversationKey, row: MessageRow): Promise<void> {
  const position = positionKey(row.order);
  await hideMessage(tx, key, {
    position,
    timeOf: async (_, id) => {
      const before = await messages.get(tx, id);
      return before && timeOf(before);
    },
  });
  await unsent.delete(tx, keyOf(row.to, row.order));
  await arrivals.delete(tx, position);
}

/** Replaces a stored message by one with another ID, at the same place in the order of arrival. */
export async function replaceMessage(
  tx: StoreWriter,
  replaced: MessageRow,
  row: MessageRow,
): Promise<void> {
  await messages.delete(tx, messageKey(replaced));
  const position = positionKey(row.order);
  if ((await arrivals.get(tx, position)) !== undefined) {
    await arrivals.put(tx, position, messageKey(row));
  }
  const key = messagePrefix({ kind: 'person', id: row.to }) + position;
  if ((await shownMessages.get(tx, key)) !== undefined) {
    await shownMessages.put(tx, key, messageKey(row));
  }
  await updateMessage(tx, row);
}

/** Deletes a stored message. */
export async function removeMessage(
  { account }: Pick<ConversationOwner, 'account'>,
  tx: StoreWriter,
  row: MessageRow,
): Promise<void> {
  await hideRow(tx, conversationOf(account, row), row);
  await messages.delete(tx, messageKey(row));
}

/** Held messages, by sender; limited, because any account may send them. */
const held = new Collection<string>('held');
const heldLimit = 1_000;
/** How many there are: key `all`. Any account may send one, so that they are not counted for each. */
const heldCounts = new Collection<number>('held-count');

async function heldCount(tx: StoreReader): Promise<number> {
  return (await heldCounts.get(tx, 'all')) ?? (await held.list(tx)).length;
}

/** Whether another message can be held. */
export async function canHoldMessage(tx: StoreReader): Promise<boolean> {
  return (await heldCount(tx)) < heldLimit;
}

export async function holdMessage(tx: StoreWriter, row: MessageRow): Promise<void> {
  await heldCounts.put(tx, 'all', (await heldCount(tx)) + 1);
  await held.put(tx, messageKey(row), messageKey(row));
}

/** Removes and returns the held messages of an account, in order of arrival. */
export async function takeHeldMessages(tx: StoreWriter, account: string): Promise<MessageRow[]> {
  const rows: MessageRow[] = [];
  const found = await held.list(tx, { prefix: `${account}/` });
  if (found.length === 0) return rows;
  await heldCounts.put(tx, 'all', (await heldCount(tx)) - found.length);
  for (const { key } of found) {
    await held.delete(tx, key);
    const row = await messages.get(tx, key);
    if (row !== undefined) rows.push(row);
  }
  return rows.sort((a, b) => a.order - b.order);
}

/** Lists the messages to show, of all conversations or of the one with an account. */
export async function listMessages(
  tx: StoreReader,
  { with: id, ...options }: ListOptions & { readonly with?: string },
): Promise<MessageRow[]> {
  const entries =
    id === undefined
      ? await arrivals.list(tx, rangeOf('', options))
      : await shownMessages.list(tx, rangeOf(messagePrefix({ kind: 'person', id }), options));
  const rows = await Promise.all(entries.map(({ value }) => messages.get(tx, value)));
  return rows.filter((row) => row !== undefined);
}

/** Lists the messages that are not sent yet: keys of recipients and positions. */
export async function unsentMessages(tx: StoreReader): Promise<string[]> {
  return (await unsent.list(tx)).map(({ key }) => key);
}

/**
 * Adds one batch of the messages of a store without conversations.
 * @returns where to continue; `undefined` at the end
 */
export async function placeStoredMessages(
  core: ConversationOwner,
  tx: StoreWriter,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string | undefined> {
  await orders.put(tx, 'last', await lastOrder(tx));
  const found = await arrivals.list(tx, { after, limit });
  for (const { key, value } of found) {
    const row = await messages.get(tx, value);
    // A released message has another place since.
    if (row === undefined || !isShown(row) || positionKey(row.order) !== key) {
      await arrivals.delete(tx, key);
    } else {
      await showMessage(core, tx, placedMessage(core, row), { isOld: true });
      await noteUnsent(tx, row);
    }
  }
  return found.length < limit ? undefined : found.at(-1)?.key;
}
