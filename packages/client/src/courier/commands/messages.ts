import type { Command } from 'commander';
import { isClientError } from '../../errors.ts';
import type { AccountEvent } from '../../events.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { followEvents } from '../follow-events.ts';
import { messageShape } from '../json-shapes.ts';
import { catchUp, messageLine, noteEvent, noteEvents, statusWords } from '../message-output.ts';
import { accountOf, namesOf } from '../names.ts';
import { onAccount, withOptions } from './context.ts';
import { type DraftOptions, draftOf, withDraft } from './draft.ts';

export function sendCommand(base: Command, environment: CliEnvironment): Command {
  const command = withDraft(withOptions(base));
  return onAccount<DraftOptions>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const [to = '', ...words] = args.filter((arg) => arg !== '');
    const id = await accountOf(account, to);
    const draft = await draftOf(session, words, options);
    const message = await toContact(session, () =>
      account.messages.send(id, draft, { signal }),
    ).catch((error: unknown) => {
      if (isClientError(error, 'relay_unreachable')) {
        out.note('The message is stored; the next command that reaches the relay sends it.');
      }
      throw error;
    });
    out.result(messageShape(message, account.id), () => [
      `${message.messageId}  ${statusWords[message.status ?? 'sending']}`,
    ]);
  });
}

/** Repeats a write after a synchronization if the account is not a contact yet. */
export async function toContact<T>(
  { account, signal }: AccountSession,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isClientError(error, 'not_a_contact')) throw error;
    // The answer to the contact request may be on the timeline, unread.
    await account.sync({ signal });
    return await write();
  }
}

interface InboxOptions {
  readonly follow?: boolean;
  readonly limit: string;
  readonly after?: string;
}

export function inboxCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .option('--follow', 'keep running and show messages as they arrive')
    .option('--limit <number>', 'largest number of messages, the latest ones', '50')
    .option('--after <order>', 'show only messages after this position');
  return onAccount<InboxOptions>(command, environment, async (session, { options }) => {
    const { account, out } = session;
    const limit = wholeNumber('--limit', options.limit);
    const after = options.after === undefined ? undefined : wholeNumber('--after', options.after);
    const { events, failure } = await catchUp(session);
    const rows = await account.messages.list(after === undefined ? {} : { after });
    const shown = rows.slice(Math.max(0, rows.length - limit));
    if (options.follow && out.isJson) {
      for (const row of shown) writeEvent(session, { kind: 'message', message: row });
    } else {
      const name = await namesOf(account);
      out.result({ messages: shown.map((row) => messageShape(row, account.id)) }, () =>
        shown.map((row) => messageLine(row, account.id, { name })),
      );
    }
    await noteEvents(session, events);
    if (options.follow) await followInbox(session);
    else if (failure !== undefined) throw failure;
  });
}

/** Parses a whole number from 0 up. @throws UsageError */
export function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new UsageError(`${flag}: give a whole number from 0 up`);
  return value;
}

async function followInbox(session: AccountSession): Promise<void> {
  const { account, out, signal } = session;
  for await (const event of followEvents(account, signal)) {
    if (out.isJson) {
      writeEvent(session, event);
    } else if (event.kind === 'message') {
      const name = await namesOf(account);
      out.result({}, () => [messageLine(event.message, account.id, { name })]);
    } else noteEvent(out, event);
  }
}

function writeEvent({ account, out }: AccountSession, event: AccountEvent): void {
  out.result(eventShape(event, account.id), () => []);
}
