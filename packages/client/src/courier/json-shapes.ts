/** The stable shapes of `--json`. Members are only ever added. */
import type { DirectMessage } from '@posthouse/protocol';
import type { AccountStatus } from '../account.ts';
import type { DeviceInfo } from '../accounts/devices.ts';
import type { Contact } from '../api/contacts.ts';
import { aliasOf } from '../contacts/contact-rows.ts';
import type { AccountEvent } from '../events.ts';
import type { MessageRow } from '../messages/message-rows.ts';
import { channelEntryShape } from './channel-output.ts';
import { groupEntryShape } from './group-output.ts';

export function messageShape(row: MessageRow, self: string) {
  // Only a known type has members of known shape; an unknown type may carry anything.
  const known: Partial<DirectMessage> =
    row.outcome === 'applied' ? ((row.content ?? {}) as Partial<DirectMessage>) : {};
  const { body, attachments, reply_to } = known;
  return {
    message_id: row.message_id,
    from: row.from,
    to: row.to,
    direction: directionOf(row, self),
    created_at: row.created_at,
    accepted_at: row.accepted_at,
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

function directionOf({ from, to }: MessageRow, self: string): 'in' | 'out' | 'self' {
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
    gap: status.gap,
    outbox: status.outbox,
    owed: status.owed,
  };
}

/** Returns one line of `inbox --follow --json`. */
export function eventShape(event: AccountEvent, self: string): object {
  switch (event.kind) {
    case 'message':
      return { event: 'message', message: messageShape(event.message, self) };
    case 'refused': {
      const { from, message_id, reason } = event.message;
      return { event: 'refused', from, message_id, reason };
    }
    case 'disconnected': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'disconnected', message };
    }
    case 'gap':
    case 'behind':
      return { event: event.kind, relay: event.relayId };
    case 'group-message':
      return { event: 'group-message', entry: groupEntryShape(event.message) };
    case 'group-change':
      return { event: 'group-change', entry: groupEntryShape(event.change) };
    case 'group-failed': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'group-failed', group: event.group_id, message };
    }
    case 'channel-post':
    case 'channel-edited':
      return { event: event.kind, entry: channelEntryShape(event.post) };
    case 'channel-failed': {
      const { message } = event.error instanceof Error ? event.error : { message: '' };
      return { event: 'channel-failed', channel: event.channel_id, message };
    }
    default: {
      if ('channel_id' in event) {
        const { kind, channel_id: channel, ...rest } = event;
        return { event: kind, channel, ...rest };
      }
      if ('group_id' in event) {
        const { kind, group_id: group, ...rest } = event;
        return { event: kind, group, ...rest };
      }
      const { kind, ...rest } = event;
      return { event: kind, ...rest };
    }
  }
}
