/** The stored timeline of a group: messages, changes, and rejected events. */
import {
  type ConversationKey,
  type ConversationOwner,
  hideMessage,
  messagePrefix,
  moveMessage,
  showMessage,
  shownMessages,
} from '../../conversations/conversation-rows.ts';
import { type ListOptions, listRange, rangeOf } from '../../conversations/list-options.ts';
import { Collection } from '../../store/collection.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { keyOf, positionKey } from '../../store/row-keys.ts';
import {
  type GroupChangeRow,
  type GroupEntryRow,
  type GroupMessageRow,
  isGroupMessage,
} from './group-entry.ts';

/** Entries read at once to find the last change. */
const batchSize = 100;

const timeline = new Collection<GroupEntryRow>('group-timeline');
/** Undecrypted messages, whose epoch's secret is missing: group, epoch, sequence. */
const undecrypted = new Collection<number>('group-pending');
/** Sequence of a message by sender and message ID: a repeated message is detected. */
const messageIds = new Collection<number>('group-message-ids');

/**
 * Stores an entry at its sequence. A message that is there stays, after the new entry: a host that
 * went back gives its sequence to another event, and must not remove what was read.
 */
export async function putGroupEntry(
  core: ConversationOwner,
  tx: StoreWriter,
  entry: GroupEntryRow,
  options: { readonly isRead?: boolean } = {},
): Promise<void> {
  const key = keyOf(entry.group_id, entry.sequence);
  const position = positionKey(entry.sequence);
  const before = await timeline.get(tx, key);
  if (before?.kind === 'message') {
    const isSame = entry.kind === 'message' && entry.message_id === before.message_id;
    if (!isSame) {
      await timeline.put(tx, keyOf(key, before.message_id), before);
      const to = keyOf(position, before.message_id);
      await moveMessage(tx, conversationOf(entry.group_id), { from: position, to });
    }
  }
  if (entry.kind === 'message') await returnMessage(tx, entry);
  await timeline.put(tx, key, entry);
  if (isGroupMessage(entry)) await showMessage(core, tx, placedMessage(entry, position), options);
}

/** Removes a message that no member can have sent, as the chain shows now. */
export async function dropMessage(
  tx: StoreWriter,
  { group_id, sequence }: GroupMessageRow,
): Promise<void> {
  await timeline.delete(tx, keyOf(group_id, sequence));
  await hideMessage(tx, conversationOf(group_id), {
    position: positionKey(sequence),
    timeOf: async (position) => (await timeline.get(tx, keyOf(group_id, position)))?.accepted_at,
  });
}

/** Moves a message back to its sequence if its host gave it to another event in the meantime. */
async function returnMessage(
  tx: StoreWriter,
  { group_id, sequence, message_id }: GroupMessageRow,
): Promise<void> {
  const key = keyOf(group_id, sequence, message_id);
  if ((await timeline.get(tx, key)) === undefined) return;
  await timeline.delete(tx, key);
  const to = positionKey(sequence);
  const from = keyOf(to, message_id);
  await moveMessage(tx, conversationOf(group_id), { from, to });
}

function conversationOf(id: string): ConversationKey {
  return { kind: 'group', id };
}

function placedMessage(row: GroupMessageRow, position: string) {
  const { group_id, from, message_id, accepted_at: time } = row;
  return { ...conversationOf(group_id), position, from, message_id, time };
}

export async function groupEntry(
  tx: StoreReader,
  groupId: string,
  sequence: number,
): Promise<GroupEntryRow | undefined> {
  return await timeline.get(tx, keyOf(groupId, sequence));
}

/** Returns a stored message, also after its host gave its sequence to another event. */
export async function groupMessage(
  tx: StoreReader,
  groupId: string,
  { sequence, message_id }: { readonly sequence: number; readonly message_id: string },
): Promise<GroupMessageRow | undefined> {
  for (const key of [keyOf(groupId, sequence), keyOf(groupId, sequence, message_id)]) {
    const entry = await timeline.get(tx, key);
    if (entry?.kind === 'message' && entry.message_id === message_id) return entry;
  }
  return undefined;
}

/** Lists entries of every kind. */
export async function listGroupEntries(
  tx: StoreReader,
  groupId: string,
  options: ListOptions = {},
): Promise<GroupEntryRow[]> {
  return await listRange(tx, timeline, { ...options, id: groupId });
}

/** Lists the members' messages. */
export async function listGroupMessages(
  tx: StoreReader,
  groupId: string,
  options: ListOptions = {},
): Promise<GroupMessageRow[]> {
  const prefix = messagePrefix(conversationOf(groupId));
  const places = await shownMessages.list(tx, rangeOf(prefix, options));
  const rows = await Promise.all(
    places.map(({ key }) => timeline.get(tx, keyOf(groupId, key.slice(prefix.length)))),
  );
  return rows.filter((row) => row !== undefined && isGroupMessage(row)) as GroupMessageRow[];
}

/**
 * Adds one batch of the messages of a store without conversations.
 * @returns where to continue; `undefined` at the end
 */
export async function placeStoredGroupMessages(
  core: ConversationOwner,
  tx: StoreWriter,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string | undefined> {
  const found = await timeline.list(tx, { after, limit });
  for (const { key, value } of found) {
    if (!isGroupMessage(value)) continue;
    const position = key.slice(value.group_id.length + 1);
    await showMessage(core, tx, placedMessage(value, position), { isOld: true });
  }
  return found.length < limit ? undefined : found.at(-1)?.key;
}

/** Returns the last change that a member signed: the state has been the same since but for the epoch. */
export async function lastChange(
  tx: StoreReader,
  groupId: string,
): Promise<GroupChangeRow | undefined> {
  let before: number | undefined;
  for (;;) {
    const range = { ...(before !== undefined && { before }), limit: batchSize, newestFirst: true };
    const entries = await listGroupEntries(tx, groupId, range);
    const found = entries.find((entry) => entry.kind === 'change' && entry.signature);
    if (found !== undefined || entries.length < batchSize) return found as GroupChangeRow;
    before = entries.at(-1)?.sequence;
  }
}

/**
 * Stores the ID of a message.
 * @returns `known` for a message that is stored at its sequence, `taken` for another one with its ID
 */
export async function claimMessageId(
  tx: StoreWriter,
  row: GroupMessageRow,
): Promise<'first' | 'known' | 'taken'> {
  const key = keyOf(row.group_id, row.from, row.message_id);
  const sequence = await messageIds.get(tx, key);
  if (sequence !== undefined && sequence !== row.sequence) return 'taken';
  await messageIds.put(tx, key, row.sequence);
  if (sequence === undefined) return 'first';
  const entry = await groupEntry(tx, row.group_id, sequence);
  const isStored = entry?.kind === 'message' && entry.message_id === row.message_id;
  return isStored ? 'known' : 'first';
}

/** Whether a message of a sender was verified here, at whatever sequence. */
export async function hasMessageId(
  tx: StoreReader,
  { group_id, from, message_id }: GroupMessageRow,
): Promise<boolean> {
  return (await messageIds.get(tx, keyOf(group_id, from, message_id))) !== undefined;
}

export async function addUndecrypted(tx: StoreWriter, row: GroupMessageRow): Promise<void> {
  await undecrypted.put(tx, keyOf(row.group_id, row.epoch, row.sequence), row.sequence);
}

export async function removeUndecrypted(tx: StoreWriter, row: GroupMessageRow): Promise<void> {
  await undecrypted.delete(tx, keyOf(row.group_id, row.epoch, row.sequence));
}

/** Returns the first epoch after another one that has undecrypted messages. */
export async function nextUndecryptedEpoch(
  tx: StoreReader,
  groupId: string,
  after: number,
): Promise<number | undefined> {
  const prefix = `${groupId}/`;
  // `~` sorts after every digit: after all messages of that epoch.
  const start = after < 0 ? {} : { after: `${keyOf(groupId, after)}/~` };
  const [first] = await undecrypted.list(tx, { prefix, ...start, limit: 1 });
  return first === undefined ? undefined : Number(first.key.slice(prefix.length).split('/')[0]);
}

/** Lists the undecrypted messages of an epoch after a sequence, oldest first. */
export async function undecryptedOf(
  tx: StoreReader,
  groupId: string,
  range: { readonly epoch: number; readonly after: number; readonly limit: number },
): Promise<GroupMessageRow[]> {
  const prefix = `${keyOf(groupId, range.epoch)}/`;
  const after = range.after < 0 ? {} : { after: `${prefix}${positionKey(range.after)}` };
  const found: GroupMessageRow[] = [];
  for (const { value } of await undecrypted.list(tx, { prefix, ...after, limit: range.limit })) {
    const entry = await groupEntry(tx, groupId, value);
    if (entry?.kind === 'message') found.push(entry);
  }
  return found;
}
