/** The stable shapes of `--json`. Members are only ever added. */
import type { DirectMessage } from '@posthouse/protocol';
import type { AccountStatus } from '../account.ts';
import type { DeviceInfo } from '../accounts/devices.ts';
import type { Contact } from '../api/contacts.ts';
import { aliasOf } from '../contacts/contact-rows.ts';
import type { AccountEvent } from '../events.ts';
import type { Message } from '../messages/message.ts';
import { channelEntryShape } from './channel-output.ts';
import { groupEntryShape } from './group-output.ts';

export function messageShape(row: Message, self: string) {
  // Only a known type has members of known shape; an unknown type may carry anything.
  const known: Partial<DirectMessage> =
    row.outcome === 'applied' ? ((row.content ?? {}) as Partial<DirectMessage>) : {};
  const { body, attachments, reply_to } = known;
  return {
    message_id: row.messageId,
    from: row.from,
    to: row.to,
    direction: directionOf(row, self),
    created_at: row.createdAt,
    accepted_at: row.acceptedAt,
    order: row.order,
    type: row.content?.$type,
    text: body?.text,
    content_type: body?.content_type,
    attachments,
    reply_to,
    status: row.status,
    error: row.error,
  };
}

function directionOf({ from, to }: Message, self: string): 'in' | 'out' | 'self' {
  if (from === to) return 'self';
  return from === self ? 'out' : 'in';
}

/** Returns one word for the state of a relationship. */
export function contactState({ relationship }: Contact) {
  if (relationship.status === 'active') return 'active';
  if (relationship.pending) return 'pending';
  if (relationship.awaiting) return 'awaiting';
  return relationship.status;
}

export function contactShape(contact: Contact) {
  return {
    account: contact.account,
    alias: aliasOf(contact),
    standing: contactState(contact),
    note: contact.request?.note,
  };
}

export function deviceShape(device: DeviceInfo) {
  return {
    device: device.deviceId,
    this_device: device.isThisDevice,
    valid: device.isValidNow,
    not_before: device.notBefore,
    expires_at: device.expiresAt,
  };
}

export function statusShape(status: AccountStatus) {
  return {
    account: status.account,
    device: status.deviceId,
    relay: status.homeRelay,
    position: status.position,
    gap: status.hasGap,
    outbox: status.outbox,
    owed: status.pendingTasks,
  };
}

/** Events whose word in the stable JSON differs from their kind in the SDK. */
const eventWords: Partial<Record<AccountEvent['kind'], string>> = {
  'contact-request': 'request',
  'contact-changed': 'contact',
  'message-refused': 'refused',
  'message-conflict': 'conflict',
  'group-incomplete': 'group-behind',
  'group-message-rejected': 'group-rejected',
  'group-message-unsent': 'group-unsent',
  'channel-incomplete': 'channel-behind',
  'channel-event-refused': 'channel-refused',
  'channel-write-unsent': 'channel-unsent',
};

/** Returns one line of `inbox --follow --json`. */
export function eventShape(event: AccountEvent, self: string): object {
  switch (event.kind) {
    case 'message':
      return { event: 'message', message: messageShape(event.message, self) };
    case 'message-refused': {
      const { from, messageId: message_id, reason } = event.message;
      return { event: 'refused', from, message_id, reason };
    }
    case 'disconnected': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'disconnected', message };
    }
    case 'timeline-gap':
      return { event: 'gap', relay: event.relayId, cause: event.cause };
    case 'timeline-incomplete':
      return { event: 'behind', relay: event.relayId };
    case 'message-conflict':
      return { event: 'conflict', from: event.from, message_id: event.messageId };
    case 'group-message-unsent': {
      const { groupId: group, messageId: message_id, reason } = event;
      return { event: 'group-unsent', group, message_id, reason };
    }
    case 'group-message':
      return { event: 'group-message', entry: groupEntryShape(event.message) };
    case 'group-change':
      return { event: 'group-change', entry: groupEntryShape(event.change) };
    case 'group-failed': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'group-failed', group: event.groupId, message };
    }
    case 'channel-post':
    case 'channel-edited':
      return { event: event.kind, entry: channelEntryShape(event.post) };
    case 'channel-failed': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'channel-failed', channel: event.channelId, message };
    }
    default: {
      const { kind, ...members } = event;
      const word = eventWords[kind] ?? kind;
      if ('channelId' in members) {
        const { channelId: channel, ...rest } = members;
        return { event: word, channel, ...rest };
      }
      if ('groupId' in members) {
        const { groupId: group, ...rest } = members;
        return { event: word, group, ...rest };
      }
      return { event: word, ...members };
    }
  }
}
