/** Sends followed channels and read marks to the account's other devices (decision 0039). */
import type { JsonObject } from '@posthouse/protocol/json';
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import type { AccountCore } from '../core.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import type { PendingTask } from '../sync/tasks.ts';
import {
  accountStateType,
  changeRows,
  channelRow,
  channelRows,
  conversationRow,
  conversationsByTime,
  currentDevices,
  dropTasks,
  enqueueTask,
  handedOver,
  isClientError,
  isRefusal,
  knownState,
  leavesOpen,
  messagePrefix,
  messageRow,
  ownKey,
  ownRecords,
  positionKey,
  seenDevices,
  sendObjectToOwnDevices,
  sentChanges,
  shownMessages,
  unixSeconds,
} from '../taken.ts';
import { batchSize, channelLimit, type ReadMark, type SharedChannel } from './account-state.ts';

/** Milliseconds between messages with changes. */
const interval = 60_000;
/** Read marks that a new device is sent, those of the newest conversations. */
const markLimit = 2_000;
/** Messages among which one of the other account is looked for. */
const ownMessagesLimit = 200;

/**
 * Enqueues the account's state for each device that was not seen before, or whose certificate had
 * ended in the meantime: it is sent once to each.
 */
export async function noteNewDevices(core: AccountCore): Promise<void> {
  const { account, clock, device, network, store } = core;
  await store.write(async (tx) => {
    const state = await knownState(tx, account);
    const seen = await seenDevices.get(tx, 'own');
    if (state === undefined || seen?.revision === state.revision) return;
    const now = unixSeconds(clock);
    // What a device that just joined knows, it learns from the others.
    const hasJustJoined = seen === undefined && (await awaitsContacts(tx, now));
    const ends: Record<string, number> = {};
    for (const [deviceId, { expires_at }] of currentDevices(network, state, now)) {
      if (deviceId === device.deviceId) continue;
      ends[deviceId] = expires_at;
      const before = seen?.ends[deviceId];
      if (hasJustJoined || (before !== undefined && before > now)) continue;
      await enqueueTask(tx, { kind: 'send-account-state', device: deviceId });
    }
    for (const { key } of await handedOver.list(tx)) {
      if (!Object.hasOwn(ends, key)) await handedOver.delete(tx, key);
    }
    await seenDevices.put(tx, 'own', { revision: state.revision, ends });
  });
}

/** Whether this device joined lately, and waits for what the others know. */
async function awaitsContacts(tx: StoreReader, now: number): Promise<boolean> {
  return ((await ownRecords.get(tx, ownKey))?.awaitsContactsUntil ?? 0) > now;
}

/**
 * Sends everything that is shared to one device, or to all. What does not fit into one message has a
 * task of its own, stored with the first message.
 */
export async function sendAccountState(
  core: AccountCore,
  task: Extract<PendingTask, { readonly kind: 'send-account-state' }>,
  signal: AbortSignal,
): Promise<void> {
  const contents = await core.store.read((tx) => wholeState(tx, unixSeconds(core.clock)));
  const { device, part = 0 } = task;
  const content = contents[part];
  if (content === undefined) return await dropTasks(core, [task]);
  const isWhole = task.part === undefined;
  const others = isWhole ? [...contents.keys()].slice(1).map((part) => ({ ...task, part })) : [];
  await sendObjectToOwnDevices(core, {
    content,
    ...(device !== undefined && { devices: [device] }),
    tasks: [task],
    again: [{ ...task, part }],
    inTransaction: async (tx) => {
      for (const other of others) await enqueueTask(tx, other);
    },
    signal,
  });
  for (const other of others) await sendAccountState(core, other, signal);
}

/** Sends what changed, at most once a minute. */
export async function sendChanges(core: AccountCore, signal: AbortSignal): Promise<void> {
  const { clock, store } = core;
  const now = clock.milliseconds();
  const { changes, content } = await store.read(async (tx) => {
    const sentAt = (await sentChanges.get(tx, 'own')) ?? 0;
    const isEarly = now >= sentAt && now - sentAt < interval;
    const found = isEarly ? [] : await changeRows.list(tx, { limit: batchSize });
    return {
      changes: found,
      content: await changedState(tx, { changes: found, now: unixSeconds(clock) }),
    };
  });
  if (changes.length === 0) return;
  const markSent = async (tx: StoreWriter) => {
    await sentChanges.put(tx, 'own', now);
    for (const { key, value } of changes) {
      // Changed again since: it is sent next time.
      if ((await changeRows.get(tx, key)) === value) await changeRows.delete(tx, key);
    }
  };
  if (content === undefined) return await store.write(markSent);
  try {
    await sendObjectToOwnDevices(core, {
      content,
      tasks: [],
      // If it is refused in the end, the whole state is sent.
      again: [{ kind: 'send-account-state' }],
      inTransaction: markSent,
      signal,
    });
  } catch (error) {
    if (isRefusal(error) && leavesOpen(error)) return;
    if (!isRefusal(error) && !isClientError(error, 'no_recipient_device')) throw error;
    await store.write(markSent);
  }
}

/** Returns the state of what changed; `undefined` if there is nothing to say about it. */
async function changedState(
  tx: StoreReader,
  { changes, now }: { readonly changes: readonly { readonly key: string }[]; readonly now: number },
): Promise<JsonObject | undefined> {
  const channels: SharedChannel[] = [];
  const read: ReadMark[] = [];
  for (const { key } of changes) {
    const [what, kind = '', id = ''] = key.split('/');
    if (what === 'follow') channels.push(...(await sharedChannel(tx, kind)));
    else read.push(...(await readMark(tx, { kind: kind as ConversationKey['kind'], id }, now)));
  }
  return contentOf(channels, read);
}

async function sharedChannel(tx: StoreReader, channelId: string): Promise<SharedChannel[]> {
  const row = await channelRow(tx, channelId);
  if (row === undefined || row.standing === 'creating') return [];
  const { channel_id, relay_id, standing, changedAt = 0 } = row;
  return [{ channel_id, relay_id, followed: standing === 'followed', changed_at: changedAt }];
}

/** Returns the contents of the messages that tell a new device everything. */
async function wholeState(tx: StoreReader, now: number): Promise<JsonObject[]> {
  const channels: SharedChannel[] = [];
  for (const { channel_id, standing } of await channelRows(tx)) {
    if (channels.length >= channelLimit) break;
    if (standing === 'followed') channels.push(...(await sharedChannel(tx, channel_id)));
  }
  const read: ReadMark[] = [];
  for (const { key } of await conversationsByTime.list(tx, { reverse: true, limit: markLimit })) {
    const [, kind, id] = key.split('/') as [string, ConversationKey['kind'], string];
    read.push(...(await readMark(tx, { kind, id }, now)));
  }
  const contents: JsonObject[] = [];
  for (let from = 0; from < Math.max(channels.length, read.length); from += batchSize) {
    const until = from + batchSize;
    const content = contentOf(channels.slice(from, until), read.slice(from, until));
    if (content !== undefined) contents.push(content);
  }
  return contents;
}

function contentOf(
  channels: readonly SharedChannel[],
  read: readonly ReadMark[],
): JsonObject | undefined {
  if (channels.length + read.length === 0) return undefined;
  return {
    $type: accountStateType,
    ...(channels.length > 0 && { channels: [...channels] }),
    ...(read.length > 0 && { read: [...read] }),
  };
}

/** Returns the mark of a conversation, if it has one. */
async function readMark(
  tx: StoreReader,
  key: ConversationKey,
  /** Unix seconds. */
  now: number,
): Promise<ReadMark[]> {
  const { kind, id } = key;
  const through = (await conversationRow(tx, key))?.readThrough;
  if (through === undefined) return [];
  if (kind !== 'person') return [{ kind, id, through }];
  const prefix = messagePrefix(key);
  // `~` sorts after every ID that may follow the position.
  const before = `${prefix}${positionKey(through)}/~`;
  const range = { prefix, before, limit: ownMessagesLimit, reverse: true };
  for (const { value } of await shownMessages.list(tx, range)) {
    const [from = '', message_id = ''] = value.split('/');
    if (from !== id) continue;
    const row = await messageRow(tx, { from, message_id });
    if (row?.accepted_at === undefined) return [];
    // The relay's claim: one in the future would mark what comes next.
    const accepted_at = Math.min(row.accepted_at, now);
    return [{ kind, id, from, message_id, accepted_at }];
  }
  return [];
}
