/** Finds the group of a command line, and formats groups, entries and events for output. */
import type { ContentReference } from '@posthouse/protocol';
import type { Account } from '../account.ts';
import type { Group, NamedMember } from '../api/groups.ts';
import type { GroupAccountEvent } from '../events.ts';
import type { GroupChange, GroupEntry } from '../groups/timeline/group-entry.ts';
import { UsageError } from './exit.ts';
import { conversationName, type NamingSession, requireName } from './names.ts';
import {
  copyMark,
  filesText,
  localTime,
  moreToRead,
  multiLine,
  oneLine,
  quoted,
  wentBack,
} from './output.ts';

/**
 * Finds a group by its ID, or by a name that only one group has. Groups that ended are searched
 * last; text that is a known ID is never read as a name.
 *
 * @throws UsageError
 */
export async function groupOf(account: Account, name: string): Promise<Group> {
  requireName(name);
  const groups = await account.groups.list();
  const same = groups.find(({ id }) => id === name);
  if (same !== undefined) return same;
  const called = groups.filter(({ state }) => state?.name === name);
  const present = called.filter(({ membership }) => membership !== 'ended');
  const [first, second] = present.length > 0 ? present : called;
  if (first === undefined) {
    throw new UsageError(`no group is called ${name}: courier group list shows them`);
  }
  if (second !== undefined) throw new UsageError(`several groups are called ${name}: use the ID`);
  return first;
}

export function groupShape(group: Group, self: string) {
  const { state } = group;
  return {
    group: group.id,
    relay: group.relayId,
    standing: group.membership,
    position: group.position,
    has_key: group.hasKey,
    blocked: group.blocked,
    name: state?.name,
    description: state?.description,
    status: state?.status,
    owner: state?.owner,
    role: roleIn(group, self),
    members: state?.members.size,
    capacity: state?.member_capacity,
    invite_policy: state?.invite_policy,
    epoch: state?.epoch,
  };
}

/** Returns the own role; `undefined` if the account is not a member. */
export function roleIn({ membership, state }: Group, self: string): string | undefined {
  return membership === 'ended' ? undefined : state?.members.get(self)?.role;
}

export function memberShape({ account, role, nickname, since }: NamedMember) {
  return { account, role, nickname, since };
}

/** Returns the `--json` shape of a timeline entry. Its members are only ever added. */
export function groupEntryShape(entry: GroupEntry): ShownShape {
  const { kind, groupId: group, sequence, epoch, acceptedAt: accepted_at } = entry;
  const placed = { kind, group, sequence, epoch, accepted_at };
  if (entry.kind === 'rejected') return { ...placed, reason: entry.reason };
  if (entry.kind === 'change') {
    const { groupId: _g, acceptedAt: _a, signature: _s, ...rest } = entry;
    return { ...rest, ...placed };
  }
  const { messageId: message_id, from, createdAt: created_at, outcome, content, reason } = entry;
  const { body, attachments, replyTo } = entry;
  return {
    ...placed,
    message_id,
    from,
    created_at,
    outcome,
    reason,
    type: content?.$type as string | undefined,
    text: body?.text,
    content_type: body?.content_type,
    attachments,
    reply_to: replyTo,
    handed_over_by: entry.handedOverBy,
  };
}

/** The members of an entry's shape that are printed for people. */
interface ShownShape {
  readonly [member: string]: unknown;
  readonly type?: string | undefined;
  readonly text?: string | undefined;
  readonly reply_to?: number | undefined;
  readonly reason?: string | undefined;
  readonly attachments?: readonly ContentReference[] | undefined;
}

/** Formats a timeline entry as one line; `undefined` for an entry that people need not see. */
export function groupEntryLine(
  entry: GroupEntry,
  name: (id: string) => string,
): string | undefined {
  const at = `${String(entry.sequence).padStart(5)}  `;
  if (entry.kind === 'rejected') return `${at}(rejected: ${oneLine(entry.reason)})`;
  if (entry.kind === 'change') {
    const text = changeText(entry, name);
    return text === undefined ? undefined : `${at}* ${text}`;
  }
  const shape = groupEntryShape(entry);
  const head = `${at}${localTime(entry.createdAt)}  ${name(entry.from)}: `;
  switch (entry.outcome) {
    case 'pending':
      return `${head}(cannot be read yet)`;
    case 'rejected':
      return `${head}(rejected: ${oneLine(shape.reason ?? '')})`;
    case 'stored':
      return `${head}[${oneLine(shape.type ?? '')}]`;
    case 'applied': {
      // Decided by type: a message may have a member of any name.
      if (shape.type?.endsWith('.group.member.nickname.update')) {
        const nickname = entry.content?.nickname;
        const called = typeof nickname === 'string' ? quoted(nickname) : 'no nickname';
        return `${at}* ${name(entry.from)} goes by ${called}`;
      }
      const reply = shape.reply_to === undefined ? '' : `(to ${shape.reply_to}) `;
      const fetch = `courier group fetch ${entry.groupId} ${entry.sequence}`;
      const files = filesText(shape.attachments ?? [], fetch);
      return `${head}${reply}${multiLine(shape.text ?? '')}${files}${copyMark(entry)}`;
    }
  }
}

const fixedTexts: Readonly<Record<string, string>> = {
  'group.create': 'created the group',
  'group.close': 'closed the group',
  'group.update': 'changed the group',
  'group.secret.rotation': 'replaced the secret',
};

function changeText(change: GroupChange, name: (id: string) => string): string | undefined {
  const by = change.by === undefined ? '' : name(change.by);
  const names = (accounts: readonly string[] = []) => accounts.map(name).join(', ');
  switch (change.type) {
    case 'group.application.approval':
      return `${by} admitted ${names(change.joined)}`;
    case 'group.member.leave':
      return `${by} left`;
    case 'group.member.removal':
      return `${by} removed ${names(change.left)}`;
    case 'group.member.ban':
      return `${by} banned ${names(change.banned)}`;
    case 'group.member.unban':
      return `${by} lifted the ban of ${names(change.unbanned)}`;
    case 'group.member.recovery.approval':
      return `${by} renewed the key of ${names(change.rekeyed)}`;
    case 'group.role.update':
      return `${by} made ${change.roles?.map((each) => `${name(each.account)} ${each.role}`)}`;
    case 'group.owner.transfer':
      return `${by} made ${names(change.roles?.flatMap((each) => (each.role === 'owner' ? [each.account] : [])))} the owner`;
    default:
      return fixedTexts[change.type] === undefined ? undefined : `${by} ${fixedTexts[change.type]}`;
  }
}

/** Returns the note for an event that is not an entry of the timeline. */
export async function groupNote(
  session: NamingSession,
  event: GroupAccountEvent,
): Promise<string | undefined> {
  const { groupId: id } = event;
  const name = await conversationName(session, { kind: 'group', id });
  switch (event.kind) {
    case 'group-joined':
      return `you are a member of ${name}`;
    case 'group-ended':
      return `you are no longer a member of ${name}`;
    case 'group-blocked':
      return `${name}: blocked at event ${event.blocked.sequence}: ${event.blocked.reason}`;
    case 'group-key-rejected':
      return `${name}: the key of epoch ${event.epoch} does not verify`;
    case 'group-applications':
      return `${name}: applications changed; show them: courier group applications ${id}`;
    case 'group-recoveries':
      return `${name}: requests for new keys changed; show them: courier group recoveries ${id}`;
    case 'group-rollback':
      return `${name}: ${wentBack}`;
    case 'group-incomplete':
      return `${name}: ${moreToRead}`;
    case 'group-failed':
      return `${name}: ${event.error.message}`;
    default:
      return undefined;
  }
}
