/** `courier channel …`: reading and writing a channel's timeline. */
import type { Command } from 'commander';
import type { ChannelEntry } from '../../channels/timeline/channel-entry.ts';
import type { ListOptions } from '../../conversations/list-options.ts';
import { isClientError } from '../../errors.ts';
import { fetchFiles } from '../attachment-files.ts';
import { channelEntryLine, channelEntryShape, channelEventLines } from '../channel-entry-output.ts';
import { addressOf, channelNote, channelOf, isAddress } from '../channel-output.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { namesOf } from '../names.ts';
import { printable } from '../output.ts';
import { watchChannel } from '../watch-channel.ts';
import { onAccount, subcommand } from './context.ts';
import {
  contentTypeOf,
  type DraftOptions,
  draftOf,
  type TextOptions,
  withDraft,
  withText,
} from './draft.ts';
import { withFolder } from './fetch.ts';
import { catchUp, positiveNumber } from './group-timeline.ts';
import { wholeNumber } from './messages.ts';

export function channelTimelineCommands(environment: CliEnvironment): Command[] {
  return [
    postCommand(environment),
    editCommand(environment),
    deleteCommand(environment),
    reportCommand(environment),
    readCommand(environment),
    fetchCommand(environment),
    watchCommand(environment),
  ];
}

function postCommand(environment: CliEnvironment): Command {
  const command = withDraft(
    subcommand(
      'post <channel> [text...]',
      'publish a post; without text, standard input is published',
    ),
  );
  return onAccount<DraftOptions>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const [name = '', ...words] = args;
    const { id } = await channelOf(account, name);
    const draft = await draftOf(session, words, options);
    const sent = await account.channels.send(id, draft, { signal });
    const { messageId, sequence } = sent;
    out.result({ channel: id, message_id: messageId, sequence }, () => [`${sequence}  published`]);
  });
}

function editCommand(environment: CliEnvironment): Command {
  const command = withText(
    subcommand(
      'edit <channel> <sequence> [text...]',
      'replace the text of a post; without text, standard input is used',
    ),
  )
    .option('--no-text', 'remove the text and leave the attachments')
    .option('--no-attachments', 'remove the attachments');
  return onAccount<TextOptions & { text: boolean; attachments: boolean }>(
    command,
    environment,
    async (session, { options, args }) => {
      const { account, out, signal } = session;
      const [name = '', number = '', ...words] = args;
      const sequence = positiveNumber('sequence', number);
      const { id } = await channelOf(account, name);
      const given = words.length > 0 ? words.join(' ') : undefined;
      const isKept = given === undefined && !options.attachments && options.text;
      const text = options.text ? (given ?? (await environment.readInput())) : null;
      const patch = {
        ...(!isKept && { text, contentType: contentTypeOf(options) }),
        ...(!options.attachments && { attachments: null }),
        signal,
      };
      await account.channels.edit(id, sequence, patch);
      out.result({ channel: id, sequence }, () => ['edited']);
    },
  );
}

function deleteCommand(environment: CliEnvironment): Command {
  const command = subcommand('delete <channel> <sequence>', 'delete a post for good').option(
    '--reason <text>',
    'public reason',
  );
  return onAccount<{ reason?: string }>(
    command,
    environment,
    async (session, { options, args }) => {
      const { account, out, signal } = session;
      const [name = '', number = ''] = args;
      const sequence = positiveNumber('sequence', number);
      const { id } = await channelOf(account, name);
      const { reason } = options;
      await account.channels.delete(id, sequence, { reason, signal });
      out.result({ channel: id, sequence }, () => ['deleted']);
    },
  );
}

function reportCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'report <channel> <sequence> <reason...>',
    "report a post to the host's operator only",
  );
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const [name = '', number = '', ...words] = args;
    const sequence = positiveNumber('sequence', number);
    const { id } = await channelOf(account, name);
    await account.channels.report(id, sequence, { reason: words.join(' '), signal });
    out.result({ channel: id, sequence }, () => ['reported']);
  });
}

interface ReadOptions {
  readonly limit: string;
  readonly before?: string;
  readonly after?: string;
  readonly relay?: string;
}

function readCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'read <channel>',
    'catch up and show the timeline; by a link, of any channel',
  )
    .option('--limit <number>', 'largest number of entries', '50')
    .option(
      '--before <sequence>',
      'show entries before this number; older pages are read if needed',
    )
    .option('--after <sequence>', 'show entries after this number')
    .option('--relay <id>', 'host of an ID that is not followed (default: the home relay)');
  return onAccount<ReadOptions>(command, environment, async (session, { options, args }) => {
    const { account, out } = session;
    if (options.before !== undefined && options.after !== undefined) {
      throw new UsageError('give either --before or --after, not both');
    }
    await catchUp(session);
    const [name = ''] = args;
    const range = {
      limit: positiveNumber('--limit', options.limit),
      ...(options.before !== undefined && { before: wholeNumber('--before', options.before) }),
      ...(options.after !== undefined && { after: wholeNumber('--after', options.after) }),
    };
    const found = await channelOf(account, name).catch((error: unknown) => {
      if (isAddress(name)) return undefined;
      throw error;
    });
    const isHere = found?.followState === 'followed';
    const shown = isHere
      ? await readFollowed(session, found.id, range)
      : await readPreview(session, { name: found?.link ?? name, relay: options.relay, range });
    const { id, entries, hasMore } = shown;
    const called = await namesOf(session, (nameOf) =>
      entries.map((entry) => channelEntryLine(entry, nameOf)),
    );
    const shapes = entries.map(channelEntryShape);
    out.result({ channel: id, entries: shapes, has_more: hasMore }, () =>
      entries.map((entry) => channelEntryLine(entry, called)),
    );
  });
}

interface TimelinePart {
  readonly id: string;
  readonly entries: readonly ChannelEntry[];
  readonly hasMore: boolean;
}

type Range = { readonly limit: number; readonly before?: number; readonly after?: number };

/** Reads one page of a channel that is not followed, and stores nothing. */
async function readPreview(
  session: AccountSession,
  { name, relay, range }: { name: string; relay: string | undefined; range: Range },
): Promise<TimelinePart> {
  const { account, signal } = session;
  const address = await addressOf(account, name, relay);
  const { descriptor, entries, hasMore } = await account.channels.preview(address, {
    ...range,
    signal,
  });
  return { id: descriptor.channel_id, entries, hasMore };
}

/** Limit of older pages read by one command: pages without visible entries may have no end. */
const olderPages = 200;

/** Lists stored entries, after reading older pages until there are enough. */
async function readFollowed(
  { account, signal }: AccountSession,
  id: string,
  { limit, before, after }: Range,
): Promise<TimelinePart> {
  const range: ListOptions =
    after === undefined
      ? { limit, newestFirst: true, ...(before !== undefined && { before }) }
      : { after, limit };
  let isReachable = true;
  for (let pages = 0; ; pages += 1) {
    const entries = await account.channels.listEntries(id, range);
    if (range.newestFirst) entries.reverse();
    const first = (await account.channels.get(id)).span?.first ?? 0;
    const isEnough = after === undefined ? entries.length >= limit : first <= after + 1;
    if (first > 0 && !isEnough && isReachable && pages < olderPages) {
      isReachable = await account.channels.readOlder(id, { signal }).then(
        () => true,
        (error: unknown) => {
          // If the host is unreachable, the stored entries are shown.
          if (isClientError(error, 'relay_unreachable')) return false;
          throw error;
        },
      );
      continue;
    }
    const isCut = entries.length >= limit;
    return { id, entries, hasMore: isCut || (after === undefined && first > 0) };
  }
}

function fetchCommand(environment: CliEnvironment): Command {
  const command = withFolder(
    subcommand('fetch <channel> <sequence>', 'download the files of a post, by its number'),
  );
  return onAccount<{ to: string }>(command, environment, async (session, { options, args }) => {
    const { account } = session;
    const [name = '', number = ''] = args;
    const sequence = positiveNumber('sequence', number);
    const { id } = await channelOf(account, name);
    const [entry] = await account.channels.listEntries(id, { after: sequence - 1, limit: 1 });
    const { attachments = [] } =
      entry?.kind === 'post' && entry.sequence === sequence ? entry.content : {};
    if (attachments.length === 0) {
      throw new UsageError(`no post ${sequence} with files is stored: see courier channel read`);
    }
    await fetchFiles(session, attachments, { folder: options.to, name: `${id}-${sequence}` });
  });
}

function watchCommand(environment: CliEnvironment): Command {
  const command = subcommand('watch <channel>', 'catch up, and show entries as they arrive').option(
    '--limit <number>',
    'number of stored entries shown first',
    '10',
  );
  return onAccount<{ limit: string }>(command, environment, async (session, { options, args }) => {
    const { account, out } = session;
    const last = positiveNumber('--limit', options.limit);
    await catchUp(session);
    const { id } = await channelOf(account, args[0] ?? '');
    const newest = { limit: last, newestFirst: true };
    const shown = (await account.channels.listEntries(id, newest)).reverse();
    const show = async (entries: readonly ChannelEntry[]) => {
      const name = await namesOf(session, (nameOf) =>
        entries.map((entry) => channelEntryLine(entry, nameOf)),
      );
      for (const entry of entries) {
        out.result({ event: 'entry', entry: channelEntryShape(entry) }, () => [
          channelEntryLine(entry, name),
        ]);
      }
      await out.drained();
    };
    await show(shown);
    for await (const watched of watchChannel(session, { id, shown })) {
      if ('entry' in watched) {
        await show([watched.entry]);
        continue;
      }
      const { event } = watched;
      if (event.kind === 'connection' && event.state === 'disconnected')
        out.note('connection lost; reconnecting');
      if (!('channelId' in event) || event.channelId !== id) continue;
      const note = await channelNote(session, event);
      const name = await namesOf(session, (nameOf) => channelEventLines(event, nameOf));
      const lines = channelEventLines(event, name);
      if (out.isJson || lines.length > 0) out.result(eventShape(event, account.id), () => lines);
      else if (note !== undefined) out.note(printable(note));
      await out.drained();
    }
  });
}
