import type { Command } from 'commander';
import { isClientError, isRefusal } from '../../errors.ts';
import type { AccountEvent } from '../../events.ts';
import type { Message } from '../../messages/message.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { followAfter, type ListedMessages, listLatest } from '../follow-messages.ts';
import { messageShape, unreadShape } from '../json-shapes.ts';
import {
  catchUp,
  hiddenNote,
  markRead,
  messageLine,
  noteEvent,
  noteEvents,
  peerOf,
  pendingRequests,
  statusWords,
  unreadAmong,
} from '../message-output.ts';
import { accountOf, namesOf } from '../names.ts';
import { onAccount, withOptions } from './context.ts';
import { type DraftOptions, draftOf, withDraft } from './draft.ts';

export function sendCommand(base: Command, environment: CliEnvironment): Command {
  const command = withDraft(withOptions(base));
  return onAccount<DraftOptions>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const [to = '', ...words] = args;
    const id = await accountOf(account, to);
    const draft = await draftOf(session, words, options);
    const message = await toContact(
      session,
      () => account.messages.send(id, draft, { signal }),
      id,
    );
    out.result(messageShape(message, account.id), () => [
      `${message.messageId}  ${statusWords[message.status ?? 'sending']}`,
    ]);
  });
}

/**
 * Repeats a write after a synchronization if the account is not a contact yet. A message that waits for a
 * newer grant is sent by the synchronization, which reads that grant.
 */
export async function toContact<T extends Message>(
  { account, signal }: AccountSession,
  write: () => Promise<T>,
  to?: string,
): Promise<T | Message> {
  try {
    return await write();
  } catch (error) {
    const waits = to !== undefined && isRefusal(error, 'forbidden') && error.kept === true;
    if (!waits && !isClientError(error, 'not_a_contact')) throw error;
    // The answer to the contact request may be on the timeline, unread.
    await account.sync({ signal });
    if (!waits) return await write();
    const newest = await account.messages.list({ with: to, newestFirst: true, limit: 50 });
    const sent = newest.find(({ from }) => from === account.id);
    if (sent === undefined || sent.status === 'waiting' || sent.status === 'sending') throw error;
    return sent;
  }
}

interface InboxOptions {
  readonly follow?: boolean;
  readonly limit: string;
  readonly after?: string;
  readonly with?: string;
  readonly keepUnread?: boolean;
}

export function inboxCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .option('--with <contact>', 'only the conversation with a contact, or your notes: me')
    .option('--follow', 'keep running and show messages as they arrive')
    .option('--limit <number>', 'largest number of messages, the latest ones', '50')
    .option('--after <order>', 'show only messages after this position')
    .option('--keep-unread', 'do not mark the messages as read');
  return onAccount<InboxOptions>(command, environment, async (session, { options }) => {
    const { account, out } = session;
    const limit = wholeNumber('--limit', options.limit);
    const after = options.after === undefined ? undefined : wholeNumber('--after', options.after);
    const peer = options.with === undefined ? undefined : await accountOf(account, options.with);
    const { events, failure } = await catchUp(session);
    const listed = await listLatest(session, { peer, after, limit });
    await showMessages(session, listed.shown, options);
    if (options.follow && out.isJson) {
      for (const { account: from, note } of await pendingRequests(session)) {
        writeEvent(session, { kind: 'contact-request', account: from, ...(note && { note }) });
      }
    }
    await noteEvents(session, events);
    if (options.follow) await followInbox(session, listed, options);
    else if (failure !== undefined) throw failure;
  });
}

/** Shows stored messages, the unread ones marked, and marks them as read. */
async function showMessages(
  session: AccountSession,
  shown: readonly Message[],
  { follow = false, keepUnread = false }: InboxOptions,
): Promise<void> {
  const { account, out } = session;
  const { unread, read, hidden } = await unreadAmong(session, shown);
  const lines = (name: (id: string) => string) =>
    shown.map((row) => messageLine(row, account.id, { name, isUnread: unread.has(row) }));
  if (follow && out.isJson) {
    for (const message of shown) {
      const isUnread = unread.has(message);
      out.result(eventShape({ kind: 'message', message }, account.id, { isUnread }), () => []);
      await out.drained();
    }
  } else {
    const name = await namesOf(session, lines);
    const requests = out.isJson ? await pendingRequests(session) : [];
    const messages = shown.map((row) => unreadShape(row, account.id, unread.has(row)));
    out.result({ messages, requests }, () => lines(name));
  }
  if (hidden > 0) out.note(hiddenNote(hidden));
  if (!keepUnread) await markRead(session, { read });
}

/** Parses a whole number from 0 up. @throws UsageError */
export function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new UsageError(`${flag}: give a whole number from 0 up`);
  return value;
}

async function followInbox(
  session: AccountSession,
  listed: ListedMessages,
  { keepUnread = false }: InboxOptions,
): Promise<void> {
  const { account, out } = session;
  const { peer } = listed;
  for await (const event of followAfter(session, listed)) {
    await out.drained();
    if (event.kind !== 'message') {
      if (out.isJson) writeEvent(session, event);
      else await noteEvent(session, event);
      continue;
    }
    const { message } = event;
    if (peer !== undefined && peer !== peerOf(session, message)) continue;
    const line = (name: (id: string) => string) => messageLine(message, account.id, { name });
    const name = await namesOf(session, line);
    const { unread, read } = await unreadAmong(session, [message]);
    const isUnread = unread.has(message);
    out.result(eventShape(event, account.id, { isUnread }), () => [line(name)]);
    if (!keepUnread) await markRead(session, { read });
  }
}

function writeEvent({ account, out }: AccountSession, event: AccountEvent): void {
  out.result(eventShape(event, account.id), () => []);
}
