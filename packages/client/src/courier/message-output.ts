/** Formats direct messages and the account's events for output. */
import { isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import type { Message } from '../messages/message.ts';
import type { AccountSession } from './client-session.ts';
import { gapNote, hostedNote } from './event-notes.ts';
import { messageShape } from './json-shapes.ts';
import { localTime, oneLine, printable, quoted } from './output.ts';

/** What a person is told about the status of a message. */
export const statusWords: Readonly<Record<NonNullable<Message['status']>, string>> = {
  waiting: 'waiting to be sent',
  sending: 'waiting to be sent',
  delivering: 'being delivered',
  target_accepted: 'delivered to the relay of the recipient',
  failed: 'not delivered',
  rejected: 'rejected by the relay',
  cancelled: 'cancelled',
};

/** Syncs the account; if the relay is unreachable, returns the failure instead of throwing. */
export async function catchUp({ account, signal }: AccountSession): Promise<{
  readonly events: readonly AccountEvent[];
  readonly failure?: unknown;
}> {
  try {
    return { events: await account.sync({ signal }) };
  } catch (failure) {
    if (signal.aborted || !isClientError(failure, 'relay_unreachable')) throw failure;
    return { events: [], failure };
  }
}

interface LineOptions {
  readonly name: (id: string) => string;
  readonly safe?: (text: string) => string;
}

/**
 * Formats a message as one line; further lines of its text are indented.
 * @param options.safe what is done to the text before its controls become spaces
 */
export function messageLine(
  row: Message,
  self: string,
  { name, safe = (text) => text }: LineOptions,
): string {
  const { type, text, attachments = [] } = messageShape(row, self);
  const shown = row.outcome === 'stored' ? `[${type}]` : (text ?? '');
  const files = attachments.map(({ uri }) => ` [${oneLine(uri)}]`).join('');
  const ends = row.from === self ? `me to ${name(row.to)}` : name(row.from);
  const state =
    row.status === undefined || row.status === 'target_accepted'
      ? ''
      : ` (${statusWords[row.status]})`;
  return `${localTime(row.createdAt)}  ${ends}: ${printable(safe(shown))}${files}${state}`;
}

/** Prints notes for events, and for contact requests that are not decided yet. */
export async function noteEvents(
  { account, out }: AccountSession,
  events: readonly AccountEvent[],
) {
  for (const event of events) noteEvent(out, event);
  for (const { account: id, status, note } of await account.contacts.list()) {
    const isNoted = events.some((it) => it.kind === 'contact-request' && it.account === id);
    if (status !== 'asks' || isNoted) continue;
    noteEvent(out, { kind: 'contact-request', account: id, ...(note !== undefined && { note }) });
  }
}

/** Prints what a person is told about an event that is no message. */
export function noteEvent(out: AccountSession['out'], event: AccountEvent): void {
  switch (event.kind) {
    case 'contact-request': {
      const note = event.note === undefined ? '' : ` (${quoted(event.note)})`;
      out.note(
        `${event.account} asks to be a contact${note}; accept with: courier accept ${event.account}`,
      );
      return;
    }
    case 'contact-changed':
      out.note(
        event.status === 'active'
          ? `${event.account} is a contact now`
          : `${event.account} is no longer a contact`,
      );
      return;
    case 'timeline-gap':
      out.note(gapNote(event));
      return;
    case 'message-refused':
      out.note(`a message of ${event.message.from} was refused: ${event.message.reason}`);
      return;
    case 'message-conflict':
      out.note(`a second message ${event.messageId} of ${event.from} was refused`);
      return;
    case 'device-expires':
      out.note(`this device ends in ${event.days} days or less; extend it: courier devices renew`);
      return;
    case 'connection':
      if (event.state === 'disconnected') out.note('connection lost; reconnecting');
      return;
    default: {
      const note = hostedNote(event);
      if (note !== undefined) out.note(note);
    }
  }
}
