/**
 * Applies objects of other own devices, in the transaction of their record (decision 0039). They
 * change no protocol state: nothing is trusted in them but where a channel is, and what a person read.
 */
import type { checkSchema as CheckSchema } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  accountStateType,
  changeConversation,
  channelRow,
  channelRows,
  checkSchema as check,
  conversationRow,
  historyType,
  messagePrefix,
  messageRow,
  positionKey,
  sharedChannels,
  unreadMessages,
} from '../taken.ts';
import { AccountState, channelLimit, type ReadMark, type SharedChannel } from './account-state.ts';
import { applyHistory } from './apply-history.ts';
import { History } from './history-object.ts';

/** Declared with its type, as every assertion must be. */
const checkSchema: typeof CheckSchema = check;

/**
 * Applies an object whose sender is a current device of the account.
 *
 * @returns the events; `undefined` for an object of a version that this client does not know
 * @throws ProtocolError if the object breaks its rules
 */
export async function applyOwnDeviceObject(
  core: AccountCore,
  tx: StoreWriter,
  { content, deviceId }: { readonly content: JsonObject; readonly deviceId: string },
): Promise<readonly AccountEvent[] | undefined> {
  if (content.$type === historyType) {
    checkSchema(History, content);
    return await applyHistory(core, tx, { history: content, deviceId });
  }
  if (content.$type !== accountStateType) return undefined;
  checkSchema(AccountState, content);
  const room = { left: await roomLeft(tx) };
  for (const channel of content.channels ?? []) await applyChannel(core, tx, { channel, room });
  const events: AccountEvent[] = [];
  for (const mark of content.read ?? []) {
    if (!(await applyMark(tx, mark))) continue;
    const conversation = { kind: mark.kind, id: mark.id };
    events.push({ kind: 'conversation-read', conversation });
  }
  return events;
}

/** Stores the later decision of two devices, to be adopted after the page. */
async function applyChannel(
  core: AccountCore,
  tx: StoreWriter,
  { channel, room }: { readonly channel: SharedChannel; readonly room: { left: number } },
): Promise<void> {
  const { channel_id, relay_id, followed: isFollowed, changed_at } = channel;
  // A clock that is ahead must not win for good.
  const changedAt = Math.min(changed_at, core.clock.milliseconds());
  const row = await channelRow(tx, channel_id);
  const pending = await sharedChannels.get(tx, channel_id);
  if (row === undefined ? !isFollowed && pending === undefined : (row.changedAt ?? 0) >= changedAt)
    return;
  if (pending !== undefined && pending.changedAt >= changedAt) return;
  if (pending === undefined && row === undefined) {
    if (room.left <= 0) return;
    room.left -= 1;
  }
  const address = { channel_id, relay_id: row?.relay_id ?? relay_id };
  await sharedChannels.put(tx, channel_id, { ...address, isFollowed, changedAt });
}

/** Returns how many more channels are taken from own devices. */
async function roomLeft(tx: StoreWriter): Promise<number> {
  const [known, pending] = [await channelRows(tx), await sharedChannels.list(tx)];
  return channelLimit - known.length - pending.length;
}

/**
 * Marks messages as read through a mark of another device; never backwards, and only in
 * conversations that this device has. What arrives later below the mark is read, too.
 *
 * @returns whether the number of unread messages changed
 */
async function applyMark(tx: StoreWriter, mark: ReadMark): Promise<boolean> {
  const key: ConversationKey = { kind: mark.kind, id: mark.id };
  const row = await conversationRow(tx, key);
  if (row === undefined) return false;
  const elsewhere =
    mark.kind === 'person'
      ? { through: mark.accepted_at, message: `${mark.from}/${mark.message_id}` }
      : { through: mark.through };
  if (elsewhere.through < (row.readElsewhere?.through ?? 0)) return false;
  const through = mark.kind === 'person' ? await orderOf(tx, mark) : mark.through;
  const found = through === undefined ? 0 : await markThrough(tx, key, through);
  const last = Number.parseInt(row.last ?? '0', 10);
  const readThrough = Math.max(row.readThrough ?? 0, Math.min(through ?? 0, last));
  await changeConversation(tx, key, (known) => ({
    ...known,
    unread: known.unread - found,
    ...(readThrough > 0 && { readThrough }),
    readElsewhere: elsewhere,
  }));
  return found > 0;
}

/** Returns the place of a marked message on this device; `undefined` if it is not here. */
async function orderOf(
  tx: StoreWriter,
  { id, from, message_id }: ReadMark & { readonly kind: 'person' },
): Promise<number | undefined> {
  const row = from === id ? await messageRow(tx, { from, message_id }) : undefined;
  return row?.order;
}

async function markThrough(
  tx: StoreWriter,
  key: ConversationKey,
  through: number,
): Promise<number> {
  const prefix = messagePrefix(key);
  const before = `${prefix}${positionKey(through)}/~`;
  const found = await unreadMessages.list(tx, { prefix, before });
  for (const each of found) await unreadMessages.delete(tx, each.key);
  return found.length;
}
