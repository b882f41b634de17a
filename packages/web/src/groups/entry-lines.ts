/** Entries of a group's timeline as lines of the conversation. */
import type { GroupChange, GroupEntry, GroupMessage } from '@posthouse/client';
import { visibleName } from '@posthouse/client/visible-text';
import type { Line } from '../state/conversation-source.ts';
import { text } from './text.ts';

const { notes } = text;

/** Turns one entry into a line; `nameOf` makes names safe to show. Of blocked accounts nothing is shown. */
export function lineOf(
  entry: GroupEntry,
  nameOf: (account: string) => string,
  blocked: ReadonlySet<string>,
): Line {
  const { sequence: order, acceptedAt } = entry;
  const facts = { order, messageId: `${order}`, from: '', createdAt: acceptedAt };
  if (entry.kind === 'rejected') return { ...facts, note: notes.invalid, details: entry.reason };
  if (entry.kind === 'change') return { ...facts, note: changeNote(entry, nameOf) };
  if (blocked.has(entry.from)) return { ...facts, note: notes.blocked };
  return { ...facts, ...messageFacts(entry, nameOf) };
}

function messageFacts(message: GroupMessage, nameOf: (account: string) => string): Partial<Line> {
  const { from, messageId, createdAt, body, attachments, replyTo, outcome, reason } = message;
  const who = nameOf(from);
  if (outcome === 'pending') return { note: notes.pending(who) };
  if (outcome === 'rejected') {
    return { note: notes.rejected(who), ...(reason !== undefined && { details: reason }) };
  }
  if (body === undefined && attachments === undefined) {
    return { note: otherNote(message, who) };
  }
  return {
    ...{ from, messageId, createdAt, sender: who },
    ...(body && { body }),
    ...(attachments && { attachments }),
    ...(replyTo !== undefined && { replyTo: { from: '', messageId: '', order: replyTo } }),
  };
}

function otherNote({ outcome, content }: GroupMessage, who: string): string {
  const isNickname = String(content?.$type).endsWith('.group.member.nickname.update');
  if (outcome !== 'applied' || !isNickname) return notes.unknown(who);
  const nickname = content?.nickname;
  return typeof nickname === 'string'
    ? notes.nickname(who, visibleName(nickname))
    : notes.noNickname(who);
}

function changeNote(change: GroupChange, nameOf: (account: string) => string): string {
  const { type, by = '', joined, left, banned, unbanned, rekeyed, roles, properties } = change;
  const names = (accounts: readonly string[] = []) => accounts.map(nameOf).join(', ');
  switch (type) {
    case 'group.create':
      return notes.created;
    case 'group.application.approval':
      return notes.joined(names(joined));
    case 'group.member.leave':
      return notes.left(names(left));
    case 'group.member.removal':
      return notes.removed(names(left), nameOf(by));
    case 'group.member.ban':
      return notes.banned(names(banned), nameOf(by));
    case 'group.member.unban':
      return notes.unbanned(names(unbanned), nameOf(by));
    case 'group.member.recovery.approval':
      return notes.rekeyed(names(rekeyed));
    case 'group.secret.rotation':
      return notes.rotated;
    case 'group.key.rotated':
      return notes.epoch;
    case 'group.close':
      return notes.closed;
    default:
  }
  if (roles !== undefined) {
    return roles
      .map(({ account, role }) => notes.role(nameOf(account), text.roles[role]))
      .join('; ');
  }
  const name = properties?.name;
  return typeof name === 'string' ? notes.renamed(visibleName(name)) : notes.changed;
}
