import type { AccountEvent, MessageStatusEvent } from '../events.ts';
import { channelNote } from './channel-output.ts';
import { groupNote } from './group-output.ts';
import { conversationName, type NamingSession } from './names.ts';
import { moreToRead, printable } from './output.ts';

/** Returns what a person is told about a gap in the timeline. */
export function gapNote({ cause }: AccountEvent & { readonly kind: 'timeline-gap' }): string {
  if (cause === 'retention') {
    return 'the relay removed some messages before this device read them; other devices may have them';
  }
  return (
    'the relay lost messages that it had stored, and was read again from the beginning; what you ' +
    'have here stays, what you miss may be on your other devices or with its sender'
  );
}

const missedNote =
  'some events were removed before this command read them; lists show the messages';

/** Returns the note that every command prints for an event of a host, group or channel. */
export async function hostedNote(
  session: NamingSession,
  event: AccountEvent,
): Promise<string | undefined> {
  let note: string | undefined;
  if (event.kind === 'timeline-incomplete') note = `${event.relayId}: ${moreToRead}`;
  if (event.kind === 'message-status') note = await lossNote(session, event);
  if (event.kind === 'events-missed') note = missedNote;
  if (event.kind === 'history' || event.kind === 'hand-over') note = historyNote(event);
  if ('groupId' in event) note = await groupNote(session, event);
  if ('channelId' in event) note = await channelNote(session, event);
  return note === undefined ? undefined : printable(note);
}

/** Returns what a person is told about messages from one own device to another. */
function historyNote(
  event: AccountEvent & { readonly kind: 'history' | 'hand-over' },
): string | undefined {
  const { deviceId, sent, isComplete } = event;
  if (event.kind === 'history') {
    return isComplete ? `${deviceId} handed over its messages: ${sent}` : undefined;
  }
  const { error } = event;
  if (error !== undefined) return `${deviceId}: messages not handed over: ${error.message}`;
  return isComplete ? `${deviceId} was handed the messages of this device: ${sent}` : undefined;
}

/** Returns what a person is told about something written here that will not take effect. */
async function lossNote(
  session: NamingSession,
  { conversation, write, status, error }: MessageStatusEvent,
): Promise<string | undefined> {
  if (status !== 'rejected' && status !== 'failed') return undefined;
  const name = await conversationName(session, conversation);
  if (conversation.kind !== 'channel') {
    return `${name}: a message could not be sent: ${error?.message}`;
  }
  return `${name}: ${write ?? 'post'} could not be carried out: ${error?.message}`;
}
