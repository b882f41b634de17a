/** `courier chat`: a conversation, a line at a time. */
import type { Command } from 'commander';
import { visibleText } from '../../content/visible-text.ts';
import { ClientError } from '../../errors.ts';
import type { Message, MessageKey } from '../../messages/message.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { failureOf } from '../failure.ts';
import { followEvents } from '../follow-events.ts';
import { messageShape } from '../json-shapes.ts';
import { lineBytes } from '../line-input.ts';
import { catchUp, markRead, messageLine, noteEvent, peerOf } from '../message-output.ts';
import { accountOf, namesOf } from '../names.ts';
import { createOutput } from '../output.ts';
import { onAccount, withOptions } from './context.ts';
import { contentTypeOf, type TextOptions, withText } from './draft.ts';
import { toContact, wholeNumber } from './messages.ts';

interface ChatOptions extends TextOptions {
  readonly limit: string;
}

export function chatCommand(base: Command, environment: CliEnvironment): Command {
  const command = withText(withOptions(base)).option(
    '--limit <number>',
    'number of earlier messages shown first',
    '10',
  );
  return onAccount<ChatOptions>(command, environment, async (opened, { options, args }) => {
    const { account } = opened;
    const limit = wholeNumber('--limit', options.limit);
    const peer = await accountOf(account, args[0] ?? '');
    const ending = new AbortController();
    const signal = AbortSignal.any([opened.signal, ending.signal]);
    const { failure } = await catchUp(opened);
    using input = environment.openLines(signal);
    const session = { ...opened, signal, out: createOutput(input, opened.out) };
    if (failure !== undefined) session.out.note(failureOf(failure).message);
    const earlier = await account.messages.list({ with: peer, limit, newestFirst: true });
    for (const message of earlier.reverse()) await show(session, message);
    const following = showArrivals(session, peer);
    // A failure there ends the conversation, also while a line is awaited.
    following.catch(() => ending.abort());
    try {
      await sendLines(session, { peer, lines: input.lines, contentType: contentTypeOf(options) });
    } finally {
      ending.abort();
      await following;
    }
  });
}

async function show(session: AccountSession, message: Message): Promise<void> {
  const { account, out } = session;
  const line = (name: (id: string) => string) =>
    messageLine(message, account.id, { name, safe: visibleText });
  const name = await namesOf(session, line);
  out.result(eventShape({ kind: 'message', message }, account.id), () => [line(name)]);
  await markRead(session, message);
}

/** Shows what others and the account's other devices write, until the conversation ends. */
async function showArrivals(session: AccountSession, peer: string): Promise<void> {
  const { account, signal } = session;
  const isArrival = (message: Message) =>
    peerOf(session, message) === peer && message.fromDeviceId !== account.deviceId;
  for await (const event of followEvents(account, signal)) {
    if (event.kind !== 'message') await noteEvent(session, event);
    else if (isArrival(event.message)) {
      await show(session, event.message);
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
  const posted: MessageKey[] = [];
  let failure: unknown;
  for await (const text of lines) {
    if (text?.trim() === '') continue;
    try {
      const draft = { text: requireLine(text), contentType };
      const message = await toContact(session, () => account.messages.post(peer, draft));
      posted.push(message);
      out.result({ event: 'sent', message: messageShape(message, account.id) }, () => []);
    } catch (error) {
      if (signal.aborted) return;
      failure ??= error;
      out.note(failureOf(error).message);
    }
  }
  for (const key of posted) {
    if (signal.aborted) return;
    const { status, error, messageId } = await account.messages.settled(key, { signal });
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
