/** How `courier` names, shows and describes channels. */
import { postReferences } from '@posthouse/protocol';
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
import { localTime, moreToRead, multiLine, oneLine, quoted } from './output.ts';

/** The channel of an ID, a link, or a name that only one channel has. @throws UsageError */
export async function channelOf(account: Account, name: string): Promise<Channel> {
  const channels = await account.channels.list();
  // Names are their owners' choice: one that reads like an address is not taken for it.
  const same = channels.find(({ id, link }) => id === name || link === name);
  if (same !== undefined) return same;
  if (isAddress(name)) throw new UsageError(`${name} is not followed here`);
  const [first, second] = channels.filter(({ descriptor }) => descriptor.name === name);
  if (first === undefined) throw new UsageError(`no channel is called ${name}`);
  if (second !== undefined) throw new UsageError(`several channels are called ${name}: use the ID`);
  return first;
}

/** Whether somebody wrote a link or an ID, and no name. */
export function isAddress(text: string): boolean {
  return /^(chan_|[^\s:]+-channel:)/.test(text);
}

/** What somebody wrote for a channel that need not be known here: a link, or an ID. */
export async function addressOf(
  account: Account,
  text: string,
  relay?: string,
): Promise<string | ChannelAddress> {
  if (!text.startsWith('chan_')) return text;
  return { channelId: text, relayId: relay ?? (await account.status()).homeRelay };
}

export function channelShape(channel: Channel) {
  const { id, relayId, standing, role, descriptor, span, link } = channel;
  return {
    channel: id,
    relay: relayId,
    standing,
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

/** One entry of a channel's timeline; members are only ever added. */
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

/** One entry of a channel's timeline, for people. */
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
  // What a body refers to and the post does not have is said, and looked for nowhere else.
  const lost = postReferences(content).filter(({ status }) => status !== 'resolved').length;
  const unresolved = lost === 0 ? '' : ` (${lost} references lead nowhere)`;
  const text = body === undefined ? '' : multiLine(body.text);
  return `${text}${files.join('')}${unresolved}${edited === undefined ? '' : ' (edited)'}`;
}

function changeText({ by, descriptor }: ChannelChangeEntry, name: (id: string) => string): string {
  const { revision, status } = descriptor;
  if (status === 'closed') return `${name(by)} closed the channel`;
  const did = revision === 0 ? 'created' : 'changed';
  return `${name(by)} ${did} the channel: ${quoted(descriptor.name)}`;
}

/** What happened in a channel that a person watches. */
export function channelEventLines(
  event: ChannelAccountEvent,
  name: (id: string) => string,
): string[] {
  const { channel_id } = event;
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
    case 'channel-refused': {
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

/** What a person should be told of a channel beside its timeline. */
export function channelNote(event: ChannelAccountEvent): string | undefined {
  const { channel_id: id } = event;
  switch (event.kind) {
    case 'channel-unsent':
      return `${id}: ${event.write} could not be carried out: ${event.reason}`;
    case 'channel-behind':
      return `${id}: ${moreToRead}`;
    case 'channel-failed':
      return `${id}: ${event.error instanceof Error ? event.error.message : 'cannot be read'}`;
    case 'channel-refused':
      return `${id}: event ${event.sequence} does not verify: ${event.reason}`;
    default:
      return undefined;
  }
}
