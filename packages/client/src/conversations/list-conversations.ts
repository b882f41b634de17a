/** Lists conversations from their rows; no history is read. */
import { channelRow } from '../channels/channel-rows.ts';
import { channelOutbox } from '../channels/outbox.ts';
import { listPosts } from '../channels/timeline/channel-entries.ts';
import type { ChannelPostEntry } from '../channels/timeline/channel-entry.ts';
import { toContact } from '../contacts/contact.ts';
import { contactRow } from '../contacts/contact-rows.ts';
import type { AccountCore } from '../core.ts';
import { groupRow } from '../groups/group-rows.ts';
import { groupOutbox } from '../groups/outbox.ts';
import { listGroupMessages } from '../groups/timeline/group-entries.ts';
import { type GroupMessage, toGroupEntry } from '../groups/timeline/group-entry.ts';
import { type Message, toMessage } from '../messages/message.ts';
import { listMessages, unsentMessages } from '../messages/message-rows.ts';
import type { StoreReader } from '../store/index.ts';
import { buildConversations } from './build-conversations.ts';
import {
  type ConversationKey,
  conversationRow,
  conversationsByTime,
  placeOf,
} from './conversation-rows.ts';
import { checkWhole } from './list-options.ts';

interface ConversationFacts {
  readonly id: string;
  /**
   * The contact's `name`, or the name of the group or channel; absent if none is known. All but
   * local names are chosen by others: `visibleName` of `@posthouse/client/content` makes them safe
   * to show.
   */
  readonly title?: string;
  /** Number of messages of others that were not marked as read, here or on another own device. */
  readonly unread: number;
  /** Position through which `markRead` marked everything as read: an `order` or a `sequence`. */
  readonly readThrough?: number;
  /** Number of messages, or other writes of a group or channel, that are not sent yet. */
  readonly waiting: number;
  /** Place in the list, for `before`. */
  readonly place: string;
}

/** A conversation as a person sees it in a list. */
export type Conversation =
  | (ConversationFacts & { readonly kind: 'person'; readonly lastMessage?: Message })
  | (ConversationFacts & { readonly kind: 'group'; readonly lastMessage?: GroupMessage })
  | (ConversationFacts & { readonly kind: 'channel'; readonly lastMessage?: ChannelPostEntry });

/** Lists conversations, the one with the newest message first. @throws ClientError `invalid_input` */
export async function listConversations(
  core: AccountCore,
  { limit, before }: { readonly limit?: number; readonly before?: Pick<Conversation, 'place'> },
): Promise<Conversation[]> {
  if (limit !== undefined) checkWhole('limit', limit, 0);
  await buildConversations(core);
  return await core.store.read(async (tx) => {
    const waiting = await waitingCounts(tx);
    const found = await conversationsByTime.list(tx, {
      reverse: true,
      ...(limit !== undefined && { limit }),
      ...(before !== undefined && { before: before.place }),
    });
    const all = await Promise.all(
      found.map(({ key: place }) => {
        const [, kind, id] = place.split('/') as [string, ConversationKey['kind'], string];
        return loadConversation(tx, { kind, id }, waiting);
      }),
    );
    return all.filter((each) => each !== undefined);
  });
}

/** Reads one conversation; `undefined` if it is not listed. */
export async function getConversation(
  core: AccountCore,
  key: ConversationKey,
): Promise<Conversation | undefined> {
  await buildConversations(core);
  return await core.store.read(async (tx) => loadConversation(tx, key, await waitingCounts(tx)));
}

async function loadConversation(
  tx: StoreReader,
  key: ConversationKey,
  waiting: ReadonlyMap<string, number>,
): Promise<Conversation | undefined> {
  const row = await conversationRow(tx, key);
  const place = row && placeOf(key, row);
  if (row === undefined || place === undefined) return undefined;
  const { kind, id } = key;
  const title = await titleOf(tx, key);
  const { unread, readThrough } = row;
  const facts: ConversationFacts = {
    id,
    ...(title !== undefined && { title }),
    unread,
    ...(readThrough !== undefined && { readThrough }),
    waiting: waiting.get(id) ?? 0,
    place,
  };
  const newest = { limit: 1, newestFirst: true };
  if (kind === 'person') {
    const [last] = await listMessages(tx, { ...newest, with: id });
    return { kind, ...facts, ...(last !== undefined && { lastMessage: toMessage(last) }) };
  }
  if (kind === 'group') {
    const [last] = await listGroupMessages(tx, id, newest);
    return { kind, ...facts, ...(last !== undefined && { lastMessage: toGroupEntry(last) }) };
  }
  const [lastMessage] = await listPosts(tx, id, newest);
  return { kind, ...facts, ...(lastMessage !== undefined && { lastMessage }) };
}

async function titleOf(tx: StoreReader, { kind, id }: ConversationKey) {
  if (kind === 'group') return (await groupRow(tx, id))?.facts?.name;
  if (kind === 'channel') return (await channelRow(tx, id))?.descriptor.name;
  return (await toContact(tx, await contactRow(tx, id))).name;
}

/** Counts what is not sent yet, by ID of the conversation. */
async function waitingCounts(tx: StoreReader): Promise<Map<string, number>> {
  const keys = await unsentMessages(tx);
  for (const { name } of [groupOutbox, channelOutbox]) {
    keys.push(...(await tx.list(name)).map(([key]) => key));
  }
  const counts = new Map<string, number>();
  for (const key of keys) {
    const id = key.slice(0, key.lastIndexOf('/'));
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}
