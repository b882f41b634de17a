/** Formats entries and events of a channel's timeline for output. Loads the Markdown parser. */
import { postReferences } from '@posthouse/protocol/markdown';
import type {
  ChannelChangeEntry,
  ChannelEntry,
  ChannelPostEntry,
} from '../channels/timeline/channel-entry.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { localTime, multiLine, oneLine, quoted } from './output.ts';

/** Returns the `--json` shape of a timeline entry. Its members are only ever added. */
export function channelEntryShape(entry: ChannelEntry): object {
  const { channelId: channel, ...rest } = entry;
  if (rest.kind === 'refused' || rest.kind === 'gap') return { channel, ...rest };
  const { acceptedAt: accepted_at, ...facts } = rest;
  if (facts.kind === 'change') return { channel, ...facts, accepted_at };
  if (facts.kind === 'deletion') {
    const { targetSequence: target_sequence, ...others } = facts;
    return { channel, ...others, accepted_at, target_sequence };
  }
  const { kind, sequence, messageId: message_id, from, content, edited } = facts;
  const { body, attachments, ...others } = content;
  return {
    ...{ channel, kind, sequence, accepted_at, message_id, from },
    text: body?.text,
    content_type: body?.content_type,
    attachments,
    references: postReferences(content),
    others: Object.keys(others).length === 0 ? undefined : others,
    edited: edited && {
      sequence: edited.sequence,
      accepted_at: edited.acceptedAt,
      by: edited.by,
    },
  };
}

/** Formats a timeline entry as one line. */
export function channelEntryLine(entry: ChannelEntry, name: (id: string) => string): string {
  const at = `${String(entry.sequence).padStart(5)}  `;
  switch (entry.kind) {
    case 'post':
      return `${at}${localTime(entry.acceptedAt)}  ${name(entry.from)}: ${postText(entry)}`;
    case 'change':
      return `${at}* ${changeText(entry, name)}`;
    case 'deletion': {
      const why = entry.reason === undefined ? '' : `: ${oneLine(entry.reason)}`;
      return `${at}* ${name(entry.by)} deleted ${entry.targetSequence}${why}`;
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
  const { channelId } = event;
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
      return [channelEntryLine({ kind: 'refused', channelId, sequence, reason }, name)];
    }
    case 'channel-gap': {
      const { from: sequence, through } = event;
      return [channelEntryLine({ kind: 'gap', channelId, sequence, through }, name)];
    }
    default:
      return [];
  }
}
