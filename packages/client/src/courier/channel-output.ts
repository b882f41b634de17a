/** Finds the channel of a command line, and formats channels and notes for output. */
import type { Account } from '../account.ts';
import type { Channel } from '../api/channels.ts';
import type { ChannelAddress } from '../channels/follow-channel.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { UsageError } from './exit.ts';
import { conversationName, type NamingSession, requireName } from './names.ts';
import { lostSettings, moreToRead, wentBack } from './output.ts';

/** Finds a channel by its ID, its link, or a name that only one channel has. @throws UsageError */
export async function channelOf(account: Account, name: string): Promise<Channel> {
  requireName(name);
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

/** Returns the note for an event that is not an entry of the timeline. */
export async function channelNote(
  session: NamingSession,
  event: ChannelAccountEvent,
): Promise<string | undefined> {
  const name = await conversationName(session, { kind: 'channel', id: event.channelId });
  switch (event.kind) {
    case 'channel-rollback':
      return `${name}: ${event.revision === undefined ? wentBack : lostSettings}`;
    case 'channel-incomplete':
      return `${name}: ${moreToRead}`;
    case 'channel-failed':
      return `${name}: ${event.error.message}`;
    case 'channel-event-refused':
      return `${name}: event ${event.sequence} does not verify: ${event.reason}`;
    default:
      return undefined;
  }
}
