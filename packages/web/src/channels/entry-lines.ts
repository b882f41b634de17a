/** Entries of a channel's timeline as lines of the conversation. */
import type { ChannelEntry } from '@posthouse/client';
import { visibleName, visibleText } from '@posthouse/client/visible-text';
import type { ChannelDescriptor } from '@posthouse/protocol';
import type { Line } from '../state/conversation-source.ts';
import { text } from './text.ts';

const { notes } = text;

/** Turns entries, oldest first, into lines; `nameOf` makes names safe to show. */
export function linesOf(
  entries: readonly ChannelEntry[],
  nameOf: (account: string) => string,
): Line[] {
  let before: ChannelDescriptor | undefined;
  /** Of the entry before: gaps have no time. */
  let createdAt = entries.find((entry) => 'acceptedAt' in entry)?.acceptedAt ?? 0;
  return entries.map((entry) => {
    if ('acceptedAt' in entry) createdAt = entry.acceptedAt;
    const facts = { order: entry.sequence, messageId: `${entry.sequence}`, from: '', createdAt };
    switch (entry.kind) {
      case 'post': {
        const { from, messageId, body, attachments, edited } = entry;
        return {
          ...{ ...facts, from, messageId, sender: nameOf(from) },
          ...(body && { body }),
          ...(attachments && { attachments }),
          ...(edited && { mark: text.edited }),
        };
      }
      case 'change': {
        const note = changeNote(entry.descriptor, before);
        before = entry.descriptor;
        return { ...facts, note };
      }
      case 'deletion': {
        const reason = entry.reason === undefined ? '' : notes.reason(visibleText(entry.reason));
        return { ...facts, note: `${notes.deleted(nameOf(entry.by))}${reason}` };
      }
      case 'refused':
        return { ...facts, note: notes.refused, details: entry.reason };
      default:
        return { ...facts, note: notes.gap };
    }
  });
}

function changeNote(now: ChannelDescriptor, before: ChannelDescriptor | undefined): string {
  if (now.revision === 0) return notes.created;
  if (now.status === 'closed') return notes.closed;
  return before === undefined || before.name === now.name
    ? notes.changed
    : notes.renamed(visibleName(now.name));
}
