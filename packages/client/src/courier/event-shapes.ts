/** The stable shapes of events in `--json`. Members are only ever added. */
import type { AccountEvent } from '../events.ts';
import { channelEntryShape } from './channel-entry-output.ts';
import { groupEntryShape } from './group-output.ts';
import { messageShape } from './json-shapes.ts';

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
