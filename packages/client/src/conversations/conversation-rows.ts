/**
 * Stored conversations: which messages each one shows, which of them are unread, and one row for
 * each conversation. All of it is written in the transaction of the message that changes it, so that
 * lists read neither hidden messages nor histories.
 */
import type { Clock } from '../environment.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { positionKey } from '../store/row-keys.ts';

/** The own account, and the time at which messages are stored. */
export interface ConversationOwner {
  readonly account: string;
  readonly clock: Clock;
}

/** Identifies a conversation. */
export interface ConversationKey {
  readonly kind: 'person' | 'group' | 'channel';
  /** The other account (the own one for notes), the group's ID, or the channel's ID. */
  readonly id: string;
}

/** A message at its place in its conversation. */
export interface PlacedMessage extends ConversationKey {
  /** End of its key: a formatted position; an ID follows if the position has another message too. */
  readonly position: string;
  readonly from: string;
  readonly message_id: string;
  /** Unix seconds: the relay's claim, or the sender's as long as there is none. */
  readonly time: number;
}

export interface ConversationRow {
  /** Unix milliseconds of the last message, at most the time at which it was stored. */
  readonly at: number;
  /** Position of the last message. */
  readonly last?: string;
  readonly unread: number;
  /** Position through which everything was marked as read. */
  readonly readThrough?: number;
  /**
   * Unix milliseconds at which this device joined the group or followed the channel. What the host
   * accepted before is not unread. 0 if it is not known: an earlier version stored it.
   */
  readonly since?: number;
  readonly isHidden?: true;
  /**
   * The newest mark of another own device: a sequence; in a conversation with a person Unix seconds
   * of the marked message, with its key.
   */
  readonly readElsewhere?: { readonly through: number; readonly message?: string };
}

/** Keys of messages (sender and message ID), by kind, ID and position. */
const shown = new Collection<string>('shown-messages');
/** Unread messages, with the same keys. */
const unread = new Collection<true>('unread-messages');
/** By kind and ID. */
const conversations = new Collection<ConversationRow>('conversations');
/** Visible conversations, by time, kind and ID. */
const byTime = new Collection<true>('conversations-by-time');

const rowKey = ({ kind, id }: ConversationKey) => `${kind}/${id}`;

/** Returns the prefix of the keys of a conversation's messages. */
export const messagePrefix = (key: ConversationKey) => `${rowKey(key)}/`;

export { byTime as conversationsByTime, shown as shownMessages };

export function conversationRow(
  tx: StoreReader,
  key: ConversationKey,
): Promise<ConversationRow | undefined> {
  return conversations.get(tx, rowKey(key));
}

/** Returns the place of a conversation in the list; `undefined` if it is not listed. */
export function placeOf(key: ConversationKey, row: ConversationRow): string | undefined {
  const isListed = !row.isHidden && (row.last ?? row.since) !== undefined;
  return isListed ? `${positionKey(row.at)}/${rowKey(key)}` : undefined;
}

/** Changes a conversation's row and its place in the list. */
export async function changeConversation(
  tx: StoreWriter,
  key: ConversationKey,
  change: (row: ConversationRow) => ConversationRow,
): Promise<void> {
  const before = await conversationRow(tx, key);
  const row = change(before ?? { at: 0, unread: 0 });
  const place = placeOf(key, row);
  const earlier = before && placeOf(key, before);
  if (earlier !== undefined && earlier !== place) await byTime.delete(tx, earlier);
  if (place !== undefined && earlier !== place) await byTime.put(tx, place, true);
  await conversations.put(tx, rowKey(key), row);
}

/**
 * Adds a message to its conversation. It is unread if another account sent it, unless the host
 * accepted it before this device joined.
 *
 * @param options.isOld for a message that was stored before there were conversations: it is read
 * @param options.isRead for a message of another own device
 */
export async function showMessage(
  { account, clock }: ConversationOwner,
  tx: StoreWriter,
  message: PlacedMessage,
  options: { readonly isOld?: boolean; readonly isRead?: boolean } = {},
): Promise<void> {
  const { isOld = false, isRead: isSeen = isOld } = options;
  const { position, from, time } = message;
  const key = messagePrefix(message) + position;
  const isPlaced = (await shown.get(tx, key)) !== undefined;
  if (isOld && isPlaced) return;
  await shown.put(tx, key, `${from}/${message.message_id}`);
  const row = await conversationRow(tx, message);
  // A message that is shown again is as read as it was.
  const isRead = isSeen || isPlaced || from === account || isReadElsewhere(message, row);
  const isUnread = !isRead && !isBeforeJoining(message, row);
  if (isUnread) await unread.put(tx, key, true);
  const at = Math.min(clock.milliseconds(), isOld ? time * 1000 : atOf(time));
  await changeConversation(tx, message, (row) => ({
    ...row,
    ...((row.last ?? '') < position && { last: position, at }),
    ...(isOld && { readThrough: Math.max(row.readThrough ?? 0, Number.parseInt(position, 10)) }),
    unread: row.unread + Number(isUnread),
  }));
}

/** Whether the host accepted a message before this device joined the group or followed the channel. */
function isBeforeJoining({ kind, position, time }: PlacedMessage, row?: ConversationRow): boolean {
  const { since = 0, readThrough = 0 } = row ?? {};
  if (since > 0) return time < Math.floor(since / 1000);
  // Older pages of a channel are read on request; groups have none.
  return kind === 'channel' && Number.parseInt(position, 10) <= readThrough;
}

/** Whether another own device marked a message as read before it arrived here. */
function isReadElsewhere(message: PlacedMessage, row?: ConversationRow): boolean {
  const { through, message: marked } = row?.readElsewhere ?? {};
  if (through === undefined) return false;
  const { kind, position, from, message_id, time } = message;
  if (kind !== 'person') return Number.parseInt(position, 10) <= through;
  return time < through || marked === `${from}/${message_id}`;
}

/**
 * Removes a message from its conversation, if it is there. The one before it is the last then.
 *
 * @param timeOf returns when a message at a position was sent, in Unix seconds, by its key
 */
export async function hideMessage(
  tx: StoreWriter,
  key: ConversationKey,
  { position, timeOf }: { readonly position: string; readonly timeOf: TimeOf },
): Promise<void> {
  const prefix = messagePrefix(key);
  if ((await shown.get(tx, prefix + position)) === undefined) return;
  await shown.delete(tx, prefix + position);
  const wasUnread = (await unread.get(tx, prefix + position)) !== undefined;
  if (wasUnread) await unread.delete(tx, prefix + position);
  const [newest] = await shown.list(tx, { prefix, limit: 1, reverse: true });
  const before = newest && { last: newest.key.slice(prefix.length), id: newest.value };
  const time = before && (await timeOf(before.last, before.id));
  await changeConversation(tx, key, ({ last: _gone, ...row }) => ({
    ...row,
    ...(before && { last: before.last }),
    at: Math.min(row.at, time === undefined ? (row.since ?? row.at) : atOf(time)),
    unread: row.unread - Number(wasUnread),
  }));
}

/** Seconds are all that hosts say; within one, the order of arrival counts. */
const atOf = (time: number) => time * 1000 + 999;

/** Returns Unix seconds of the message at a position, which has an ID: see `shown-messages`. */
type TimeOf = (position: string, id: string) => Promise<number | undefined>;

/** Moves a message of a conversation to another position. */
export async function moveMessage(
  tx: StoreWriter,
  key: ConversationKey,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  const prefix = messagePrefix(key);
  const message = await shown.get(tx, prefix + from);
  if (message === undefined) return;
  await shown.delete(tx, prefix + from);
  await shown.put(tx, prefix + to, message);
  let isCountedTwice = false;
  if ((await unread.get(tx, prefix + from)) !== undefined) {
    isCountedTwice = (await unread.get(tx, prefix + to)) !== undefined;
    await unread.delete(tx, prefix + from);
    await unread.put(tx, prefix + to, true);
  }
  const [newest] = await shown.list(tx, { prefix, limit: 1, reverse: true });
  await changeConversation(tx, key, (row) => ({
    ...row,
    last: newest?.key.slice(prefix.length) ?? to,
    unread: row.unread - Number(isCountedTwice),
  }));
}

/** Unread messages that one transaction marks as read. */
export const readBatchSize = 500;

/**
 * Marks the first unread messages of a stored conversation as read, through a position.
 *
 * @returns how many there were; below `limit`, all are read now
 */
export async function readBatch(
  tx: StoreWriter,
  key: ConversationKey,
  { through, limit = readBatchSize }: { readonly through: number; readonly limit?: number },
): Promise<number> {
  const prefix = messagePrefix(key);
  // `~` sorts after every ID that may follow the position.
  const before = `${prefix}${positionKey(through)}/~`;
  const found = await unread.list(tx, { prefix, before, limit });
  for (const each of found) await unread.delete(tx, each.key);
  if (found.length > 0) {
    await changeConversation(tx, key, (row) => ({ ...row, unread: row.unread - found.length }));
  }
  return found.length;
}

/**
 * Takes the marks of a group or channel back to a position: its host was put back to an earlier state,
 * and gives later sequences to other messages. Messages that are stored stay as read as they are.
 */
export async function lowerMarks(
  tx: StoreWriter,
  key: ConversationKey,
  position: number,
): Promise<void> {
  const { readThrough = 0, readElsewhere } = (await conversationRow(tx, key)) ?? {};
  if (Math.max(readThrough, readElsewhere?.through ?? 0) <= position) return;
  await changeConversation(tx, key, (row) => ({
    ...row,
    readThrough: Math.min(readThrough, position),
    readElsewhere: { through: Math.min(readElsewhere?.through ?? 0, position) },
  }));
}

/** Lists a group that was joined or a channel that is followed, also without messages. */
export async function openConversation(
  { clock }: Pick<ConversationOwner, 'clock'>,
  tx: StoreWriter,
  key: ConversationKey,
  { since = clock.milliseconds() } = {},
): Promise<void> {
  const known = await conversationRow(tx, key);
  if (known?.since !== undefined && !known.isHidden) return;
  await changeConversation(tx, key, ({ isHidden: _hidden, ...row }) => ({
    since,
    ...row,
    at: row.at === 0 ? clock.milliseconds() : row.at,
  }));
}

/** Removes a conversation from the list; its messages stay. */
export async function hideConversation(tx: StoreWriter, key: ConversationKey): Promise<void> {
  if ((await conversationRow(tx, key)) === undefined) return;
  await changeConversation(tx, key, (row) => ({ ...row, isHidden: true }));
}

/** Removes a conversation and one batch of its messages. @returns whether there may be more */
export async function removeConversation(
  tx: StoreWriter,
  key: ConversationKey,
  limit: number,
): Promise<boolean> {
  await hideConversation(tx, key);
  await conversations.delete(tx, rowKey(key));
  const prefix = messagePrefix(key);
  const found = await shown.list(tx, { prefix, limit });
  for (const each of found) {
    await shown.delete(tx, each.key);
    await unread.delete(tx, each.key);
  }
  return found.length === limit;
}
