/** Finds the channel of a command line, and formats channels, entries and events for output. */
import { postReferences } from '@posthouse/protocol/markdown';
import type { Account } from '../account.ts';
import type { Channel } from '../api/channels.ts';
import type { ChannelAddress } from '../channels/follow-channel.ts';
import type {
  ChannelChangeEntry,
  ChannelEntry,
  ChannelPostEntry,
} from '../channels/timeline/channel-entries.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { UsageError } from './exit.ts';
import { localTime, moreToRead, multiLine, oneLine, quoted, wentBack } from './output.ts';

/** Finds a channel by its ID, its link, or a name that only one channel has. @throws UsageError */
export async function channelOf(account: Account, name: string): Promise<Channel> {
  const channels = await account.channels.list();
  // Owners choose names freely: a name that looks like an address does not match as one.
  const same = channels.find(({ id, link }) => id === name || link === name);
  if (same !== undefined) return same;
  if (isAddress(name)) {
    throw new UsageError(`${name} is not followed here: courier channel follow ${name}`);
  }
  const [first, second] = channels.filter(({ descriptor }) => descriptor.name === name);
  if (first === undefined) {
    throw new UsageError(`no channel is called ${name}: courier channel list shows them`);
  }
  if (second !== undefined) throw new UsageError(`several channels are called ${name}: use the ID`);
  return first;
}

/** Whether the text has the form of a link or an ID, and not of a name. */
export function isAddress(text: string): boolean {
  return /^(chan_|[^\s:]+-channel:)/.test(text);
}

/** Returns the address of a link, or of an ID and its host; the channel need not be followed. */
export async function addressOf(
  account: Account,
  text: string,
  relay?: string,
): Promise<string | ChannelAddress> {
  if (!text.startsWith('chan_')) return text;
  return { channelId: text, relayId: relay ?? (await account.status()).homeRelay };
}

export function channelShape(channel: Channel) {
  const { id, relayId, followState, role, descriptor, span, link } = channel;
  return {
    channel: id,
    relay: relayId,
    standing: followState,
    role,
    name: descriptor.name,
    description: descriptor.description,
    owner: descriptor.creator,
    moderators: descriptor.moderators ?? [],
    status: descriptor.status,
    revision: descriptor.revision,
    first: span?.first,
    position: span?.position,
    link,
  };
}

/** Returns the `--json` shape of a timeline entry. Its members are only ever added. */
export function channelEntryShape(entry: ChannelEntry): object {
  const { channel_id: channel, ...rest } = entry;
  if (entry.kind !== 'post') return { channel, ...rest };
  const { kind, sequence, accepted_at, message_id, from, content, edited } = entry;
  const { body, attachments, ...others } = content;
  return {
    ...{ channel, kind, sequence, accepted_at, message_id, from },
    text: body?.text,
    content_type: body?.content_type,
    attachments,
    references: postReferences(content),
    others: Object.keys(others).length === 0 ? undefined : others,
    edited,
  };
}

/** Formats a timeline entry as one line. */
export function channelEntryLine(entry: ChannelEntry, name: (id: string) => string): string {
  const at = `${String(entry.sequence).padStart(5)}  `;
  switch (entry.kind) {
    case 'post':
      return `${at}${localTime(entry.accepted_at)}  ${name(entry.from)}: ${postText(entry)}`;
    case 'change':
      return `${at}* ${changeText(entry, name)}`;
    case 'deletion': {
      const why = entry.reason === undefined ? '' : `: ${oneLine(entry.reason)}`;
      return `${at}* ${name(entry.by)} deleted ${entry.target_sequence}${why}`;
    }
    case 'refused':
      return `${at}(refused: ${oneLine(entry.reason)})`;
    case 'gap':
      return `${at}(up to ${entry.through}: not everything that lies between is available)`;
  }
}

function postText({ content, edited }: ChannelPostEntry): string {
  const { body, attachments = [] } = content;
  const files = attachments.map(
    ({ uri, content_type, size }) => ` [${oneLine(content_type)}, ${size} bytes: ${oneLine(uri)}]`,
  );
  // References without an attachment in the post are counted, never fetched from elsewhere.
  const lost = postReferences(content).filter(({ status }) => status !== 'resolved').length;
  const unresolved = lost === 0 ? '' : ` (${lost} references without an attachment)`;
  const text = body === undefined ? '' : multiLine(body.text);
  return `${text}${files.join('')}${unresolved}${edited === undefined ? '' : ' (edited)'}`;
}

function changeText({ by, descriptor }: ChannelChangeEntry, name: (id: string) => string): string {
  const { revision, status } = descriptor;
  if (status === 'closed') return `${name(by)} closed the channel`;
  const did = revision === 0 ? 'created' : 'changed';
  return `${name(by)} ${did} the channel: ${quoted(descriptor.name)}`;
}

/** Formats an event of a watched channel as lines; none for an event that is a note. */
export function channelEventLines(
  event: ChannelAccountEvent,
  name: (id: string) => string,
): string[] {
  const { channelId: channel_id } = event;
  switch (event.kind) {
    case 'channel-post':
    case 'channel-edited':
      return [channelEntryLine(event.post, name)];
    case 'channel-changed': {
      const { descriptor } = event;
      const now = descriptor.status === 'closed' ? 'closed' : quoted(descriptor.name);
      return [`       * the channel is ${now} now`];
    }
    case 'channel-deleted': {
      const why = event.reason === undefined ? '' : `: ${oneLine(event.reason)}`;
      return [`       * ${name(event.by)} deleted ${event.sequence}${why}`];
    }
    case 'channel-event-refused': {
      const { sequence, reason } = event;
      return [channelEntryLine({ kind: 'refused', channel_id, sequence, reason }, name)];
    }
    case 'channel-gap': {
      const { from: sequence, through } = event;
      return [channelEntryLine({ kind: 'gap', channel_id, sequence, through }, name)];
    }
    default:
      return [];
  }
}

/** Returns the note for an event that is not an entry of the timeline. */
export function channelNote(event: ChannelAccountEvent): string | undefined {
  const { channelId: id } = event;
  switch (event.kind) {
    case 'channel-write-unsent':
      return `${id}: ${event.write} could not be carried out: ${event.reason}`;
    case 'channel-rollback':
      return `${id}: ${wentBack}`;
    case 'channel-incomplete':
      return `${id}: ${moreToRead}`;
    case 'channel-failed':
      return `${id}: ${event.error instanceof Error ? event.error.message : 'cannot be read'}`;
    case 'channel-event-refused':
      return `${id}: event ${event.sequence} does not verify: ${event.reason}`;
    default:
      return undefined;
  }
}
