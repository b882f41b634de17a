/** `courier group …`: reading and writing a group's timeline. */
import type { Command } from 'commander';
import { isClientError } from '../../errors.ts';
import { fetchFiles } from '../attachment-files.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { hostedNote } from '../event-notes.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { followEvents } from '../follow-events.ts';
import { groupEntryLine, groupEntryShape, groupNote, groupOf } from '../group-output.ts';
import { namesOf } from '../names.ts';
import { printable, quoted } from '../output.ts';
import { onAccount, subcommand } from './context.ts';
import { type DraftOptions, draftOf, withDraft } from './draft.ts';
import { withFolder } from './fetch.ts';

export function timelineCommands(environment: CliEnvironment): Command[] {
  return [
    sendCommand(environment),
    readCommand(environment),
    fetchCommand(environment),
    nicknameCommand(environment),
  ];
}

/** Syncs the account and prints notes; if the relay is unreachable, the stored state is shown. */
export async function catchUp(session: AccountSession): Promise<void> {
  const { account, out, signal } = session;
  try {
    for (const event of await account.sync({ signal })) {
      const note = await hostedNote(session, event);
      if (note !== undefined) out.note(note);
    }
  } catch (error) {
    if (signal.aborted || !isClientError(error, 'relay_unreachable')) throw error;
    out.note('The relay cannot be reached; this is the stored state. Try again later.');
  }
}

/** Parses a whole number from 1 up. @throws UsageError */
export function positiveNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UsageError(`${flag}: give a whole number from 1 up`);
  return value;
}

function sendCommand(environment: CliEnvironment): Command {
  const command = withDraft(
    subcommand('send <group> [text...]', 'send a message; without text, standard input is sent'),
  ).option('--reply <sequence>', 'number of the message that it answers');
  return onAccount<DraftOptions & { reply?: string }>(
    command,
    environment,
    async (session, { options, args }) => {
      const { account, out, signal } = session;
      const [name = '', ...words] = args;
      const { id } = await groupOf(account, name);
      const draft = {
        ...(await draftOf(session, words, options)),
        ...(options.reply !== undefined && { replyTo: positiveNumber('--reply', options.reply) }),
      };
      const sent = await account.groups.send(id, draft, { signal });
      const { messageId, sequence } = sent;
      out.result({ group: id, message_id: messageId, sequence }, () => [`${messageId}  sent`]);
    },
  );
}

function nicknameCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'nickname <group> [name...]',
    'set your nickname in a group; without a name, remove it',
  );
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const [name = '', ...words] = args;
    const nickname = words.join(' ') || null;
    const { id } = await groupOf(account, name);
    await account.groups.setNickname(id, nickname, { signal });
    out.result({ group: id, nickname }, () => [
      nickname === null ? 'nickname removed' : `your nickname is ${quoted(nickname)}`,
    ]);
  });
}

function fetchCommand(environment: CliEnvironment): Command {
  const command = withFolder(
    subcommand('fetch <group> <sequence>', 'download the files of a message, by its number'),
  );
  return onAccount<{ to: string }>(command, environment, async (session, { options, args }) => {
    const { account } = session;
    const [name = '', number = ''] = args;
    const sequence = positiveNumber('sequence', number);
    const { id } = await groupOf(account, name);
    const [entry] = await account.groups.listEntries(id, { after: sequence - 1, limit: 1 });
    const { attachments = [] } = entry?.sequence === sequence ? groupEntryShape(entry) : {};
    if (attachments.length === 0) {
      throw new UsageError(
        `no message ${sequence} with files is stored: courier group read ${name}`,
      );
    }
    await fetchFiles(session, attachments, { folder: options.to, name: `${id}-${sequence}` });
  });
}

interface ReadOptions {
  readonly follow?: boolean;
  readonly limit: string;
  readonly after?: string;
}

function readCommand(environment: CliEnvironment): Command {
  const command = subcommand('read <group>', 'catch up and show the timeline')
    .option('--follow', 'keep running and show entries as they arrive')
    .option('--limit <number>', 'largest number of entries, the latest ones', '50')
    .option('--after <sequence>', 'show only entries after this number');
  return onAccount<ReadOptions>(command, environment, async (session, { options, args }) => {
    await catchUp(session);
    const { account, out } = session;
    const { id } = await groupOf(account, args[0] ?? '');
    const last = positiveNumber('--limit', options.limit);
    const after =
      options.after === undefined ? {} : { after: positiveNumber('--after', options.after) };
    const newestFirst = options.after === undefined;
    const entries = await account.groups.listEntries(id, { ...after, limit: last, newestFirst });
    if (newestFirst) entries.reverse();
    const name = await namesOf(session, (nameOf) =>
      entries.map((entry) => groupEntryLine(entry, nameOf)),
    );
    if (options.follow && out.isJson) {
      for (const entry of entries)
        out.result({ event: 'entry', entry: groupEntryShape(entry) }, () => []);
    } else {
      out.result({ group: id, entries: entries.map(groupEntryShape) }, () =>
        entries.flatMap((entry) => groupEntryLine(entry, name) ?? []),
      );
    }
    if (options.follow) await followGroup(session, id, entries.at(-1)?.sequence ?? -1);
  });
}

/** Shows the entries after the last one shown, each time something happens. */
async function followGroup(session: AccountSession, id: string, from: number): Promise<void> {
  const { account, out, signal } = session;
  let shown = from;
  for await (const event of followEvents(account, signal)) {
    if (event.kind === 'connection' && event.state === 'disconnected')
      out.note('connection lost; reconnecting');
    const isNote = 'groupId' in event && event.groupId === id;
    const note = isNote ? await groupNote(session, event) : undefined;
    if (note !== undefined && out.isJson) out.result(eventShape(event, account.id), () => []);
    else if (note !== undefined) out.note(printable(note));
    const entries = await account.groups.listEntries(id, { after: shown });
    const name = await namesOf(session, (nameOf) =>
      entries.map((entry) => groupEntryLine(entry, nameOf)),
    );
    for (const entry of entries) {
      shown = entry.sequence;
      out.result({ event: 'entry', entry: groupEntryShape(entry) }, () => {
        const line = groupEntryLine(entry, name);
        return line === undefined ? [] : [line];
      });
      await out.drained();
    }
  }
}
