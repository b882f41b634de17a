/** Formats direct messages and the account's events for output. */
import { isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import type { Message } from '../messages/message.ts';
import type { AccountSession } from './client-session.ts';
import { gapNote, hostedNote } from './event-notes.ts';
import { messageShape } from './json-shapes.ts';
import { nameAndId } from './names.ts';
import { copyMark, filesText, localTime, oneLine, printable, quoted } from './output.ts';

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
  readonly isUnread?: boolean;
}

/**
 * Formats a message as one line; further lines of its text are indented.
 * @param options.safe what is done to the text before its controls become spaces
 */
export function messageLine(
  row: Message,
  self: string,
  { name, safe = (text) => text, isUnread = false }: LineOptions,
): string {
  const { type, text, attachments = [] } = messageShape(row, self);
  const shown = row.outcome === 'stored' ? `[${type}]` : (text ?? '');
  const files = filesText(attachments, `courier fetch ${oneLine(row.messageId)}`);
  const ends = row.from === self ? `me to ${name(row.to)}` : name(row.from);
  const state =
    row.status === undefined || row.status === 'target_accepted'
      ? ''
      : ` (${statusWords[row.status]})`;
  return `${localTime(row.createdAt)}  ${isUnread ? '* ' : ''}${ends}: ${printable(safe(shown))}${files}${state}${copyMark(row)}`;
}

/** Prints notes for events, and for contact requests that are not decided yet. */
export async function noteEvents(
  session: AccountSession,
  events: readonly AccountEvent[],
): Promise<void> {
  for (const event of events) await noteEvent(session, event);
  for (const { account, note } of await pendingRequests(session)) {
    const isNoted = events.some((it) => it.kind === 'contact-request' && it.account === account);
    if (isNoted) continue;
    await noteEvent(session, { kind: 'contact-request', account, ...(note && { note }) });
  }
}

/** Lists contact requests that are not decided yet. */
export async function pendingRequests({ account }: AccountSession) {
  const contacts = await account.contacts.list();
  return contacts.flatMap(({ account: id, status, note }) =>
    status === 'asks' ? [{ account: id, note }] : [],
  );
}

/** Prints what a person is told about an event that is no message. */
export async function noteEvent(session: AccountSession, event: AccountEvent): Promise<void> {
  const { out } = session;
  if (out.isJson) return;
  switch (event.kind) {
    case 'contact-request': {
      const note = event.note === undefined ? '' : ` (${quoted(event.note)})`;
      const who = await nameAndId(session, event.account);
      out.note(`${who} asks to be a contact${note}; accept with: courier accept ${event.account}`);
      return;
    }
    case 'contact-changed': {
      const who = await nameAndId(session, event.account);
      out.note(`${who} is ${event.status === 'active' ? 'a contact now' : 'no longer a contact'}`);
      return;
    }
    case 'timeline-gap':
      out.note(gapNote(event));
      return;
    case 'message-refused':
      out.note(
        `a message of ${await nameAndId(session, event.message.from)} was refused: ${event.message.reason}`,
      );
      return;
    case 'message-conflict':
      out.note(
        `a second message ${event.messageId} of ${await nameAndId(session, event.from)} was refused`,
      );
      return;
    case 'device-expires':
      out.note(`this device ends in ${event.days} days or less; extend it: courier devices renew`);
      return;
    case 'connection':
      if (event.state === 'disconnected') out.note('connection lost; reconnecting');
      return;
    default: {
      const note = await hostedNote(session, event);
      if (note !== undefined) out.note(note);
    }
  }
}

/** Returns the other account of a message: the own one for notes. */
export function peerOf({ account }: AccountSession, { from, to }: Message): string {
  return from === account.id ? to : from;
}

/** Unread messages that are counted and not shown. */
const mostHidden = 1_000;

/**
 * Finds the unread messages among those that are shown, and how far each conversation is read then:
 * through its last shown message, unless older unread ones are not shown.
 */
export async function unreadAmong(session: AccountSession, shown: readonly Message[]) {
  const { account } = session;
  const isOther = ({ from }: Message) => from !== account.id;
  const unread = new Set<Message>();
  const read: { readonly id: string; readonly through: number }[] = [];
  let hidden = 0;
  for (const [id, messages] of Map.groupBy(shown, (message) => peerOf(session, message))) {
    const found = await account.conversations.get({ kind: 'person', id });
    const { unread: count = 0, readThrough = 0 } = found ?? {};
    const fresh = messages.filter((each) => isOther(each) && each.order > readThrough);
    for (const message of fresh) unread.add(message);
    // More may be unread because they arrived since: only earlier ones count.
    const before = messages[0]?.order ?? 0;
    const range = { with: id, after: readThrough, before, limit: mostHidden };
    const earlier = fresh.length < count ? await account.messages.list(range) : [];
    const left = earlier.filter(isOther).length || Number(earlier.length === mostHidden);
    hidden += left;
    if (left === 0 && fresh.length > 0) {
      read.push({ id, through: Math.max(...fresh.map(({ order }) => order)) });
    }
  }
  return { unread, read, hidden };
}

/** Marks conversations as read, as far as {@link unreadAmong} says. */
export async function markRead(
  { account }: AccountSession,
  { read }: Pick<Awaited<ReturnType<typeof unreadAmong>>, 'read'>,
): Promise<void> {
  for (const { id, through } of read) {
    await account.conversations.markRead({ kind: 'person', id }, { through });
  }
}

/** Note for unread messages that are older than what is shown. */
export function hiddenNote(count: number): string {
  const number = count === mostHidden ? `${count} or more` : count;
  const messages = count === 1 ? 'message is' : 'messages are';
  return `${number} older unread ${messages} not shown: give a larger --limit`;
}
