/** `courier group …`: the timeline of a group. */
import type { Command } from 'commander';
import { isClientError } from '../../errors.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { hostedNote } from '../event-notes.ts';
import { UsageError } from '../exit.ts';
import { groupEntryLine, groupEntryShape, groupNote, groupOf } from '../group-output.ts';
import { eventShape } from '../json-shapes.ts';
import { namesOf } from '../names.ts';
import { printable, quoted } from '../output.ts';
import { baseCommand, onAccount } from './context.ts';

export function timelineCommands(environment: CliEnvironment): Command[] {
  return [sendCommand(environment), readCommand(environment), nicknameCommand(environment)];
}

/** Without a relay there is still what was known before. */
export async function catchUp({ account, out, signal }: AccountSession): Promise<void> {
  try {
    for (const event of await account.sync({ signal })) {
      const note = hostedNote(event);
      if (note !== undefined) out.note(note);
    }
  } catch (error) {
    if (signal.aborted || !isClientError(error, 'relay_unreachable')) throw error;
    out.note('The relay cannot be reached; this is what was known before.');
  }
}

/** @throws UsageError */
export function positiveNumber(flag: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new UsageError(`${flag}: expected a number`);
  return value;
}

function sendCommand(environment: CliEnvironment): Command {
  const command = baseCommand(
    'send <group> [text...]',
    'send a message; without text, what stands on input',
  )
    .option('--markdown', 'the text is CommonMark')
    .option('--reply <sequence>', 'the number of the message it answers');
  return onAccount<{ markdown?: boolean; reply?: string }>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const [name = '', ...words] = args.filter((arg) => arg !== '');
      const text = words.length > 0 ? words.join(' ') : await environment.readInput();
      const { id } = await groupOf(account, name);
      const draft = {
        text,
        contentType: options.markdown ? 'text/markdown; variant=CommonMark' : 'text/plain',
        ...(options.reply !== undefined && { replyTo: positiveNumber('--reply', options.reply) }),
      };
      const sent = await account.groups.send(id, draft, { signal }).catch((error: unknown) => {
        if (isClientError(error, 'relay_unreachable')) {
          out.note('The message is kept; it goes out as soon as a command reaches the host.');
        }
        throw error;
      });
      const { message_id, sequence } = sent;
      out.result({ group: id, message_id, sequence }, () => [`${message_id}  sent`]);
    },
  );
}

function nicknameCommand(environment: CliEnvironment): Command {
  const command = baseCommand(
    'nickname <group> [name...]',
    'choose what you are called in a group; nothing for no name',
  );
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const [name = '', ...words] = args.filter((arg) => arg !== '');
    const nickname = words.length === 0 ? null : words.join(' ');
    const { id } = await groupOf(account, name);
    await account.groups.setNickname(id, nickname, { signal });
    out.result({ group: id, nickname }, () => [
      nickname === null ? 'no nickname any more' : `you are ${quoted(nickname)} there`,
    ]);
  });
}

interface ReadOptions {
  readonly follow?: boolean;
  readonly limit: string;
  readonly after?: string;
}

function readCommand(environment: CliEnvironment): Command {
  const command = baseCommand('read <group>', 'catch up and show the timeline')
    .option('--follow', 'stay, and show what happens as it happens')
    .option('--limit <number>', 'show only the last so many', '50')
    .option('--after <sequence>', 'show only what is behind this number');
  return onAccount<ReadOptions>(command, environment, async (session, { options, args }) => {
    await catchUp(session);
    const { account, out } = session;
    const { id } = await groupOf(account, args[0] ?? '');
    const last = positiveNumber('--limit', options.limit);
    const after =
      options.after === undefined ? {} : { after: positiveNumber('--after', options.after) };
    const range = options.after === undefined ? { last } : { ...after, limit: last };
    const entries = await account.groups.entries(id, range);
    const name = await namesOf(account);
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

/** Shows whatever is behind the last entry that was shown, each time something happens. */
async function followGroup(session: AccountSession, id: string, from: number): Promise<void> {
  const { account, out, signal } = session;
  let shown = from;
  for await (const event of account.follow({ signal })) {
    if (event.kind === 'disconnected') out.note('connection lost; trying again');
    const isNote = 'group_id' in event && event.group_id === id;
    const note = isNote ? groupNote(event) : undefined;
    if (note !== undefined && out.isJson) out.result(eventShape(event, account.id), () => []);
    else if (note !== undefined) out.note(printable(note));
    const name = await namesOf(account);
    for (const entry of await account.groups.entries(id, { after: shown })) {
      shown = entry.sequence;
      out.result({ event: 'entry', entry: groupEntryShape(entry) }, () => {
        const line = groupEntryLine(entry, name);
        return line === undefined ? [] : [line];
      });
    }
  }
}
