/**
 * The stored form of events. What the store has already is stored as a reference: the log does not
 * double the messages, and holds nothing of a post that was deleted meanwhile.
 */
import { channelPost } from '../channels/timeline/channel-entries.ts';
import type { PlainError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import { groupMessage } from '../groups/timeline/group-entries.ts';
import { toGroupEntry } from '../groups/timeline/group-entry.ts';
import { toMessage } from '../messages/message.ts';
import { messageRow } from '../messages/message-rows.ts';
import type { StoreReader } from '../store/index.ts';

interface MessageReference {
  readonly kind: 'message' | 'message-refused';
  readonly from: string;
  readonly id: string;
}

interface GroupReference {
  readonly kind: 'group-message';
  readonly group: string;
  readonly at: number;
  readonly id: string;
}

interface ChannelReference {
  readonly kind: 'channel-post' | 'channel-edited';
  readonly channel: string;
  readonly at: number;
  readonly id: string;
}

type Reference = MessageReference | GroupReference | ChannelReference;

/** An event as a row of the log. */
export type StoredEvent = Reference | Exclude<AccountEvent, { readonly kind: Reference['kind'] }>;

export function toStoredEvent(event: AccountEvent): StoredEvent {
  switch (event.kind) {
    case 'message':
    case 'message-refused': {
      const { from, messageId: id } = event.message;
      return { kind: event.kind, from, id };
    }
    case 'group-message': {
      const { sequence: at, messageId: id } = event.message;
      return { kind: event.kind, group: event.groupId, at, id };
    }
    case 'channel-post':
    case 'channel-edited': {
      const { sequence: at, messageId: id } = event.post;
      return { kind: event.kind, channel: event.channelId, at, id };
    }
    default:
      return withoutLongData(event);
  }
}

/** Characters of an error's details that are stored with it. */
const longestData = 4_096;

/** Leaves out details of a relay that would fill the store: it may send a mebibyte with each error. */
function withoutLongData<Event extends object>(event: Event): Event {
  const { error } = event as { readonly error?: PlainError };
  if (!error?.data || JSON.stringify(error.data).length <= longestData) return event;
  return { ...event, error: { ...error, message: error.message, data: undefined } };
}

/** @returns `undefined` if what the event is about was removed from the store */
export async function fromStoredEvent(
  tx: StoreReader,
  row: StoredEvent,
): Promise<AccountEvent | undefined> {
  switch (row.kind) {
    case 'message':
    case 'message-refused': {
      const found = await messageRow(tx, { from: row.from, message_id: row.id });
      return found && { kind: row.kind, message: toMessage(found) };
    }
    case 'group-message': {
      const message = await groupMessage(tx, row.group, { sequence: row.at, message_id: row.id });
      return message && { kind: row.kind, groupId: row.group, message: toGroupEntry(message) };
    }
    case 'channel-post':
    case 'channel-edited': {
      const post = await channelPost(tx, row.channel, { sequence: row.at, message_id: row.id });
      return post && { kind: row.kind, channelId: row.channel, post };
    }
    default:
      return row;
  }
}
