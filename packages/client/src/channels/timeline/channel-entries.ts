/** The stored timeline of a channel, one row per sequence. */
import { type ChannelPostEdit, type ProjectedPost, postState } from '@posthouse/protocol';
import {
  type ConversationKey,
  type ConversationOwner,
  hideMessage,
  messagePrefix,
  moveMessage,
  removeConversation,
  showMessage,
  shownMessages,
} from '../../conversations/conversation-rows.ts';
import { type ListOptions, listRange, rangeOf } from '../../conversations/list-options.ts';
import { Collection } from '../../store/collection.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { keyOf, positionKey } from '../../store/row-keys.ts';
import { forgetEnded } from '../../sync/written-messages.ts';
import {
  type ChannelChangeRow,
  type ChannelEntry,
  type ChannelEntryRow,
  type ChannelPostEntry,
  type ChannelPostRow,
  type NonPostRow,
  toChannelEntry,
} from './channel-entry.ts';

/** An edit of a post before the stored part of the timeline. */
export interface WaitingEdit {
  readonly sequence: number;
  readonly accepted_at: number;
  readonly account: string;
  /** Revision of the descriptor that permitted it. */
  readonly revision: number;
  readonly edit: ChannelPostEdit;
}

/** Rows read or removed in one transaction. */
const batchSize = 500;

const timeline = new Collection<ChannelEntryRow>('channel-timeline');
/** By channel, target and sequence. */
const waitingEdits = new Collection<WaitingEdit>('channel-edits');
/**
 * Deleted posts by channel and sequence: the message ID, or `true` for a post before the stored part
 * of the timeline, which was never read.
 */
const deleted = new Collection<string | true>('channel-deleted');

/** Lists entries of every kind. */
export async function listChannelEntries(
  tx: StoreReader,
  channelId: string,
  options: ListOptions = {},
): Promise<ChannelEntry[]> {
  const rows = await listRange(tx, timeline, { ...options, id: channelId });
  return rows.map((row) => toChannelEntry(row));
}

/** Lists posts in their edited state. */
export async function listPosts(
  tx: StoreReader,
  channelId: string,
  options: ListOptions = {},
): Promise<ChannelPostEntry[]> {
  const prefix = messagePrefix(conversationOf(channelId));
  const places = await shownMessages.list(tx, rangeOf(prefix, options));
  const rows = await Promise.all(
    places.map(({ key }) => timeline.get(tx, keyOf(channelId, key.slice(prefix.length)))),
  );
  return rows.flatMap((row) => (row?.kind === 'post' ? [toChannelEntry(row)] : []));
}

/**
 * Adds one batch of the posts of a store without conversations.
 * @returns where to continue; `undefined` at the end
 */
export async function placeStoredPosts(
  core: ConversationOwner,
  tx: StoreWriter,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<string | undefined> {
  const found = await timeline.list(tx, { after, limit });
  for (const { key, value } of found) {
    if (value.kind !== 'post') continue;
    const position = key.slice(value.channel_id.length + 1);
    await showMessage(core, tx, placedPost(value, position), { isOld: true });
  }
  return found.length < limit ? undefined : found.at(-1)?.key;
}

function conversationOf(id: string): ConversationKey {
  return { kind: 'channel', id };
}

function placedPost(
  { channel_id, from, post, accepted_at: time }: ChannelPostRow,
  position: string,
) {
  return { ...conversationOf(channel_id), position, from, message_id: post.message_id, time };
}

/** Returns the entry of a projected post. */
export function postEntry(channelId: string, projected: ProjectedPost): ChannelPostEntry {
  return toChannelEntry(storedPost(channelId, projected));
}

function storedPost(channelId: string, projected: ProjectedPost): ChannelPostRow {
  const { sequence, acceptedAt, account, post, state, edited } = projected;
  return {
    kind: 'post',
    channel_id: channelId,
    sequence,
    accepted_at: acceptedAt,
    from: account,
    post,
    ...(edited !== undefined && {
      state,
      edited: { sequence: edited.sequence, accepted_at: edited.acceptedAt, by: edited.account },
    }),
  };
}

/** Returns a stored post, also after its host gave its sequence to another event. */
export async function channelPost(
  tx: StoreReader,
  channelId: string,
  { sequence, message_id }: { readonly sequence: number; readonly message_id: string },
): Promise<ChannelPostEntry | undefined> {
  for (const key of [keyOf(channelId, sequence), keyOf(channelId, sequence, message_id)]) {
    const row = await timeline.get(tx, key);
    if (row?.kind === 'post' && row.post.message_id === message_id) return toChannelEntry(row);
  }
  return undefined;
}

/** Reads a stored post in the form that the projection continues with. */
export async function projectedPost(
  tx: StoreReader,
  channelId: string,
  sequence: number,
): Promise<ProjectedPost | undefined> {
  const row = await timeline.get(tx, keyOf(channelId, sequence));
  if (row?.kind !== 'post') return undefined;
  const { accepted_at: acceptedAt, from: account, post, state = postState(post), edited } = row;
  return {
    ...{ sequence, acceptedAt, account, post, state },
    ...(edited !== undefined && {
      edited: { sequence: edited.sequence, acceptedAt: edited.accepted_at, account: edited.by },
    }),
  };
}

export async function putPost(
  core: ConversationOwner,
  tx: StoreWriter,
  { channelId, post }: { readonly channelId: string; readonly post: ProjectedPost },
): Promise<void> {
  const row = storedPost(channelId, post);
  if (row.from === core.account) await forgetEnded(tx, channelId, row.post.message_id);
  const before = await putRow(tx, row);
  if (before?.kind === 'post' && before.post.message_id === row.post.message_id) return;
  await showMessage(core, tx, placedPost(row, positionKey(row.sequence)));
}

/** Stores an entry. @returns whether it is not stored already */
export async function putChannelEntry(tx: StoreWriter, entry: NonPostRow): Promise<boolean> {
  const before = await putRow(tx, entry);
  return before === undefined || JSON.stringify(before) !== JSON.stringify(entry);
}

/**
 * Stores a row at its sequence. A post that is there stays, after the new row: a host that went back
 * gives its sequence to another event, and must not remove what was read.
 *
 * @returns what was stored there
 */
async function putRow(tx: StoreWriter, row: ChannelEntryRow): Promise<ChannelEntryRow | undefined> {
  const key = keyOf(row.channel_id, row.sequence);
  const before = await timeline.get(tx, key);
  if (before?.kind === 'post') {
    const id = before.post.message_id;
    const isSame = row.kind === 'post' && row.post.message_id === id;
    if (!isSame) {
      await timeline.put(tx, keyOf(key, id), before);
      const from = positionKey(row.sequence);
      const to = keyOf(from, id);
      await moveMessage(tx, conversationOf(row.channel_id), { from, to });
    }
  }
  if (row.kind === 'post') await returnPost(tx, row);
  await timeline.put(tx, key, row);
  return before;
}

/** Moves a post back to its sequence if its host gave it to another event in the meantime. */
async function returnPost(tx: StoreWriter, row: ChannelPostRow): Promise<void> {
  const { channel_id, sequence, post } = row;
  const key = keyOf(channel_id, sequence, post.message_id);
  if ((await timeline.get(tx, key)) === undefined) return;
  await timeline.delete(tx, key);
  const to = positionKey(sequence);
  await moveMessage(tx, conversationOf(channel_id), { from: keyOf(to, post.message_id), to });
}

/** Returns the last stored change of the descriptor, if there is one. */
export async function lastDescriptorChange(
  tx: StoreReader,
  channelId: string,
): Promise<ChannelChangeRow | undefined> {
  let before: number | undefined;
  for (;;) {
    const range = { ...(before !== undefined && { before }), limit: batchSize, newestFirst: true };
    const rows = await listRange(tx, timeline, { ...range, id: channelId });
    const found = rows.find((row) => row.kind === 'change');
    if (found !== undefined || rows.length < batchSize) return found;
    before = rows.at(-1)?.sequence;
  }
}

export async function removeEntry(
  tx: StoreWriter,
  channelId: string,
  sequence: number,
): Promise<void> {
  await timeline.delete(tx, keyOf(channelId, sequence));
  await hidePost(tx, channelId, positionKey(sequence));
}

async function hidePost(tx: StoreWriter, channelId: string, position: string): Promise<void> {
  const timeOf = async (before: string) => {
    const row = await timeline.get(tx, keyOf(channelId, before));
    return row?.kind === 'post' ? row.accepted_at : undefined;
  };
  await hideMessage(tx, conversationOf(channelId), { position, timeOf });
}

export async function putWaitingEdit(
  tx: StoreWriter,
  channelId: string,
  waiting: WaitingEdit,
): Promise<void> {
  const key = keyOf(channelId, waiting.edit.target_sequence, waiting.sequence);
  await waitingEdits.put(tx, key, waiting);
}

/** Removes and returns the edits that wait for a post, oldest first. */
export async function removeWaitingEdits(
  tx: StoreWriter,
  channelId: string,
  target: number,
): Promise<WaitingEdit[]> {
  const rows = await waitingEdits.list(tx, { prefix: `${keyOf(channelId, target)}/` });
  for (const { key } of rows) await waitingEdits.delete(tx, key);
  return rows.map(({ value }) => value);
}

export async function markDeleted(
  tx: StoreWriter,
  channelId: string,
  target: { readonly sequence: number; readonly messageId?: string | undefined },
): Promise<void> {
  const { sequence, messageId = true } = target;
  await deleted.put(tx, keyOf(channelId, sequence), messageId);
}

/** Returns the ID of the post that was deleted at a sequence; `true` if the post was never read. */
export async function deletedMessage(
  tx: StoreReader,
  channelId: string,
  sequence: number,
): Promise<string | true | undefined> {
  return await deleted.get(tx, keyOf(channelId, sequence));
}

/** Whether a post was deleted; its sequence may have been given to another one since. */
export async function isDeleted(
  tx: StoreReader,
  channelId: string,
  post: { readonly sequence: number; readonly messageId: string },
): Promise<boolean> {
  const found = await deletedMessage(tx, channelId, post.sequence);
  return found === true || found === post.messageId;
}

/** Removes one batch of entries after a sequence. @returns whether there may be more */
export async function removeEntriesAfter(
  tx: StoreWriter,
  channelId: string,
  sequence: number,
): Promise<boolean> {
  const range = { prefix: `${channelId}/`, after: keyOf(channelId, sequence), limit: batchSize };
  const rows = await timeline.list(tx, range);
  for (const { key } of rows) {
    await timeline.delete(tx, key);
    await hidePost(tx, channelId, key.slice(range.prefix.length));
  }
  return rows.length === batchSize;
}

/** Removes one batch of a channel's timeline. @returns whether there may be more */
export async function removeTimeline(tx: StoreWriter, channelId: string): Promise<boolean> {
  let hasMore = await removeConversation(tx, conversationOf(channelId), batchSize);
  for (const collection of [timeline, waitingEdits, deleted]) {
    const rows = await collection.list(tx, { prefix: `${channelId}/`, limit: batchSize });
    for (const { key } of rows) await collection.delete(tx, key);
    hasMore ||= rows.length === batchSize;
  }
  return hasMore;
}
