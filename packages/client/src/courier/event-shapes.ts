/** The stable shapes of events in `--json`. Members are only ever added. */
import type { AccountEvent, MessageStatusEvent } from '../events.ts';
import { channelEntryShape } from './channel-entry-output.ts';
import { groupEntryShape } from './group-output.ts';
import { unreadShape } from './json-shapes.ts';

/** Events whose word in the stable JSON differs from their kind in the SDK. */
const eventWords: Partial<Record<AccountEvent['kind'], string>> = {
  'contact-request': 'request',
  'contact-changed': 'contact',
  'conversation-read': 'read',
  'message-refused': 'refused',
  'message-conflict': 'conflict',
  'group-incomplete': 'group-behind',
  'group-message-rejected': 'group-rejected',
  'channel-incomplete': 'channel-behind',
  'channel-event-refused': 'channel-refused',
};

/** Returns one line of `inbox --follow --json`. */
export function eventShape(
  event: AccountEvent,
  self: string,
  { isUnread = false }: { readonly isUnread?: boolean } = {},
): object {
  switch (event.kind) {
    case 'message':
      return { event: 'message', message: unreadShape(event.message, self, isUnread) };
    case 'message-refused': {
      const { from, messageId: message_id, reason } = event.message;
      return { event: 'refused', from, message_id, reason };
    }
    case 'device-expires':
      return { event: 'device-expires', expires_at: event.expiresAt, days: event.days };
    case 'connection': {
      if (event.state !== 'disconnected') {
        const { kind: _kind, state, ...members } = event;
        return { event: state, ...members };
      }
      const { message } = event.error;
      return { event: 'disconnected', message };
    }
    case 'hand-over':
    case 'history': {
      const { kind, deviceId: device, isComplete: complete, ...counts } = event;
      return { event: kind, device, complete, ...counts };
    }
    case 'timeline-gap':
      return { event: 'gap', relay: event.relayId, cause: event.cause };
    case 'timeline-incomplete':
      return { event: 'behind', relay: event.relayId };
    case 'message-conflict':
      return { event: 'conflict', from: event.from, message_id: event.messageId };
    case 'message-status':
      return statusShape(event);
    case 'group-message':
      return { event: 'group-message', entry: groupEntryShape(event.message) };
    case 'group-change':
      return { event: 'group-change', entry: groupEntryShape(event.change) };
    case 'group-failed': {
      const { message } = event.error;
      return { event: 'group-failed', group: event.groupId, message };
    }
    case 'channel-post':
    case 'channel-edited':
      return { event: event.kind, entry: channelEntryShape(event.post) };
    case 'channel-failed': {
      const { message } = event.error;
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

/** The shape of a status; what a group or channel did not take has the words of earlier versions. */
function statusShape(event: MessageStatusEvent): object {
  const { conversation, messageId: message_id, write, status, error } = event;
  const { kind, id } = conversation;
  const isLost = status === 'rejected' || status === 'failed';
  if (kind === 'group' && isLost) {
    return { event: 'group-unsent', group: id, message_id, reason: error?.message };
  }
  if (kind === 'channel' && isLost) {
    const reason = error?.message;
    return { event: 'channel-unsent', channel: id, write: write ?? 'post', reason };
  }
  return { event: 'status', conversation, message_id, write, status, error };
}
