/** `courier chat`: a conversation, a line at a time. */
import type { Command } from 'commander';
import { visibleText } from '../../content/visible-text.ts';
import { ClientError } from '../../errors.ts';
import type { Message } from '../../messages/message.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { failureOf } from '../failure.ts';
import { followAfter, type ListedMessages, listLatest } from '../follow-messages.ts';
import { messageShape } from '../json-shapes.ts';
import { lineBytes } from '../line-input.ts';
import {
  catchUp,
  hiddenNote,
  markRead,
  messageLine,
  noteEvent,
  peerOf,
  unreadAmong,
} from '../message-output.ts';
import { accountOf, namesOf } from '../names.ts';
import { createOutput } from '../output.ts';
import { onAccount, withOptions } from './context.ts';
import { contentTypeOf, type TextOptions, withText } from './draft.ts';
import { toContact, wholeNumber } from './messages.ts';

interface ChatOptions extends TextOptions {
  readonly limit?: string;
}

/** Earlier messages that are shown first: all unread ones up to a number. */
const fewEarlier = 10;
const mostUnread = 500;

export function chatCommand(base: Command, environment: CliEnvironment): Command {
  const command = withText(withOptions(base)).option(
    '--limit <number>',
    `number of earlier messages shown first (default: the unread ones, at least ${fewEarlier})`,
  );
  return onAccount<ChatOptions>(command, environment, async (opened, { options, args }) => {
    const { account } = opened;
    const given = options.limit === undefined ? undefined : wholeNumber('--limit', options.limit);
    const peer = await accountOf(account, args[0] ?? '');
    const ending = new AbortController();
    const signal = AbortSignal.any([opened.signal, ending.signal]);
    const { events, failure } = await catchUp(opened);
    using input = environment.openLines(signal);
    const session = { ...opened, signal, out: createOutput(input, opened.out) };
    if (failure !== undefined) session.out.note(failureOf(failure).message);
    const { unread: count = 0 } =
      (await account.conversations.get({ kind: 'person', id: peer })) ?? {};
    const limit = given ?? Math.max(fewEarlier, Math.min(count, mostUnread));
    const listed = await listLatest(session, { peer, limit });
    const unread = await unreadAmong(session, listed.shown);
    for (const message of listed.shown) {
      await show(session, message, { isUnread: unread.unread.has(message) });
    }
    if (unread.hidden > 0) session.out.note(hiddenNote(unread.hidden));
    await markRead(session, unread);
    for (const event of events) if (event.kind !== 'message') await noteEvent(session, event);
    const following = showArrivals(session, listed);
    // A failure there ends the conversation, also while a line is awaited.
    following.catch(() => ending.abort());
    try {
      await sendLines(session, { peer, lines: input.lines, contentType: contentTypeOf(options) });
    } finally {
      ending.abort();
      await following;
    }
    // Ctrl+C is a usual end of a conversation, but not while lines wait.
    if ((await account.status()).outbox > 0) opened.signal.throwIfAborted();
  });
}

async function show(
  session: AccountSession,
  message: Message,
  { isUnread }: { readonly isUnread: boolean },
): Promise<void> {
  const { account, out } = session;
  const line = (name: (id: string) => string) =>
    messageLine(message, account.id, { name, safe: visibleText });
  const name = await namesOf(session, line);
  const shape = eventShape({ kind: 'message', message }, account.id, { isUnread });
  out.result(shape, () => [line(name)]);
  await out.drained();
}

/** Shows what others and the account's other devices write, until the conversation ends. */
async function showArrivals(session: AccountSession, listed: ListedMessages): Promise<void> {
  const { account } = session;
  const isArrival = (message: Message) =>
    peerOf(session, message) === listed.peer && message.fromDeviceId !== account.deviceId;
  for await (const event of followAfter(session, listed)) {
    if (event.kind !== 'message') await noteEvent(session, event);
    else if (isArrival(event.message)) {
      const { message } = event;
      const found = await unreadAmong(session, [message]);
      await show(session, message, { isUnread: found.unread.has(message) });
      await markRead(session, found);
    }
  }
}

/**
 * Posts each line as a message, and at the end waits until all have an answer.
 * @throws the first failure, after all lines were read
 */
async function sendLines(
  session: AccountSession,
  options: {
    readonly peer: string;
    readonly lines: AsyncIterable<string | undefined>;
    readonly contentType: string;
  },
): Promise<void> {
  const { account, out, signal } = session;
  const { peer, lines, contentType } = options;
  const posted: string[] = [];
  let failure: unknown;
  for await (const text of lines) {
    if (text?.trim() === '') continue;
    try {
      const draft = { text: requireLine(text), contentType };
      const message = await toContact(session, () => account.messages.post(peer, draft));
      posted.push(message.messageId);
      out.result({ event: 'sent', message: messageShape(message, account.id) }, () => []);
      await out.drained();
    } catch (error) {
      if (signal.aborted) return;
      failure ??= error;
      out.note(failureOf(error).message);
    }
  }
  for (const messageId of posted) {
    if (signal.aborted) return;
    const key = { from: account.id, messageId };
    const { status, error } = await account.messages.settled(key, { signal });
    if (status !== 'failed' && status !== 'rejected') continue;
    failure ??= new ClientError(
      'relay_refused',
      `message ${messageId}: ${error?.message ?? status}`,
    );
  }
  if (failure !== undefined) throw failure;
}

function requireLine(text: string | undefined): string {
  if (text === undefined)
    throw new UsageError(`a line is over ${lineBytes} bytes: send shorter ones`);
  return text;
}
