import type { Command } from 'commander';
import { isClientError } from '../../errors.ts';
import type { AccountEvent } from '../../events.ts';
import type { Message } from '../../messages/message.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { gapNote, hostedNote } from '../event-notes.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { followEvents } from '../follow-events.ts';
import { messageShape } from '../json-shapes.ts';
import { accountOf, namesOf } from '../names.ts';
import { localTime, oneLine, printable, quoted } from '../output.ts';
import { onAccount, withOptions } from './context.ts';
import { type DraftOptions, draftOf, withDraft } from './draft.ts';

export function sendCommand(base: Command, environment: CliEnvironment): Command {
  const command = withDraft(withOptions(base));
  return onAccount<DraftOptions>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const [to = '', ...words] = args.filter((arg) => arg !== '');
    const id = await accountOf(account, to);
    const draft = await draftOf(session, words, options);
    const message = await account.messages
      .send(id, draft, { signal })
      .catch(async (error: unknown) => {
        if (!isClientError(error, 'not_a_contact')) throw error;
        // The answer to the contact request may be on the timeline, unread.
        await account.sync({ signal });
        return await account.messages.send(id, draft, { signal });
      })
      .catch((error: unknown) => {
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

const statusWords: Readonly<Record<NonNullable<Message['status']>, string>> = {
  waiting: 'waiting to be sent',
  sending: 'waiting to be sent',
  delivering: 'being delivered',
  target_accepted: 'delivered to the relay of the recipient',
  failed: 'not delivered',
  rejected: 'rejected by the relay',
  cancelled: 'cancelled',
};

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
        shown.map((row) => messageLine(row, account.id, name)),
      );
    }
    await noteEvents(session, events);
    if (options.follow) await followInbox(session);
    else if (failure !== undefined) throw failure;
  });
}

/** Syncs the account; if the relay is unreachable, returns the failure instead of throwing. */
async function catchUp({ account, signal }: AccountSession): Promise<{
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

/** Parses a whole number from 0 up. @throws UsageError */
export function wholeNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new UsageError(`${flag}: give a whole number from 0 up`);
  return value;
}

function messageLine(row: Message, self: string, name: (id: string) => string): string {
  const { type, text, attachments = [] } = messageShape(row, self);
  const shown = row.outcome === 'stored' ? `[${type}]` : (text ?? '');
  const files = attachments.map(({ uri }) => ` [${oneLine(uri)}]`).join('');
  const ends = row.from === self ? `me to ${name(row.to)}` : name(row.from);
  const state =
    row.status === undefined || row.status === 'target_accepted'
      ? ''
      : ` (${statusWords[row.status]})`;
  return `${localTime(row.createdAt)}  ${ends}: ${printable(shown)}${files}${state}`;
}

/** Prints notes for events, and for contact requests that are not decided yet. */
async function noteEvents({ account, out }: AccountSession, events: readonly AccountEvent[]) {
  for (const event of events) noteEvent(out, event);
  for (const { account: id, request } of await account.contacts.list()) {
    const isNoted = events.some((it) => it.kind === 'contact-request' && it.account === id);
    if (request === undefined || isNoted) continue;
    const note = request.note && { note: request.note };
    noteEvent(out, { kind: 'contact-request', account: id, ...note });
  }
}

function noteEvent(out: AccountSession['out'], event: AccountEvent): void {
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
    case 'connection':
      if (event.state === 'disconnected') out.note('connection lost; reconnecting');
      return;
    default: {
      const note = hostedNote(event);
      if (note !== undefined) out.note(note);
    }
  }
}

async function followInbox(session: AccountSession): Promise<void> {
  const { account, out, signal } = session;
  for await (const event of followEvents(account, signal)) {
    if (out.isJson) {
      writeEvent(session, event);
    } else if (event.kind === 'message') {
      const name = await namesOf(account);
      out.result({}, () => [messageLine(event.message, account.id, name)]);
    } else noteEvent(out, event);
  }
}

function writeEvent({ account, out }: AccountSession, event: AccountEvent): void {
  out.result(eventShape(event, account.id), () => []);
}
