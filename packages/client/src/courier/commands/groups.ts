/** `courier group …`: groups, their properties, invitations, and joining. */
import type { GroupInvitePolicy } from '@posthouse/protocol';
import type { Command } from 'commander';
import type { Group } from '../../api/groups.ts';
import type { CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { groupOf, groupShape, memberShape, roleIn } from '../group-output.ts';
import { accountOf, aliasIn, namesOf } from '../names.ts';
import { columns, localTime, oneLine, quoted } from '../output.ts';
import { onAccount, subcommand, withVerbs } from './context.ts';
import { groupManagementCommands } from './group-members.ts';
import { catchUp, positiveNumber, timelineCommands } from './group-timeline.ts';

const secondsPerDay = 86_400;
const policies = ['administrators', 'members_targeted', 'members_shareable'] as const;

/** Adds all its verbs to `courier group`. */
export function groupCommand(base: Command, environment: CliEnvironment): Command {
  const verbs = [
    listCommand,
    showCommand,
    createCommand,
    updateCommand,
    inviteCommand,
    invitesCommand,
    revokeCommand,
    joinCommand,
    addCommand,
    forgetCommand,
    membersCommand,
  ];
  return withVerbs(base, [
    ...verbs.map((make) => make(environment)),
    ...timelineCommands(environment),
    ...groupManagementCommands(environment),
  ]);
}

function listCommand(environment: CliEnvironment): Command {
  const command = subcommand('list', 'catch up and show the groups');
  return onAccount(command, environment, async (session) => {
    await catchUp(session);
    const { account, out } = session;
    const groups = await account.groups.list();
    out.result({ groups: groups.map((group) => groupShape(group, account.id)) }, () =>
      columns(
        groups.map((group) => [
          group.id,
          membershipWord(group),
          roleIn(group, account.id) ?? '',
          oneLine(group.state?.name ?? ''),
        ]),
      ),
    );
  });
}

/** Returns the state of a group in one word. */
function membershipWord({ blocked, state, membership }: Group): string {
  if (blocked !== undefined) return 'blocked';
  return membership === 'member' && state?.status === 'closed' ? 'closed' : membership;
}

function groupLines(group: Group, self: string, name: (id: string) => string): string[] {
  const { state } = group;
  const facts: [string, string][] = [
    ['group', group.id],
    ['host', group.relayId],
    ['standing', group.membership],
  ];
  if (group.membership === 'member') {
    facts.push([
      'key',
      group.hasKey ? 'here' : `missing; ask for a new one: courier group recover ${group.id}`,
    ]);
  }
  if (group.blocked !== undefined) {
    facts.push(['blocked', `at ${group.blocked.sequence}: ${oneLine(group.blocked.reason)}`]);
  }
  if (state !== undefined) {
    facts.push(
      ['name', oneLine(state.name)],
      ...(state.description === ''
        ? []
        : [['about', oneLine(state.description)] as [string, string]]),
      ['status', state.status],
      ['owner', name(state.owner)],
      ['members', `${state.members.size} of ${state.member_capacity}`],
      ['own role', roleIn(group, self) ?? 'none'],
      ['invitations', state.invite_policy],
    );
  }
  return columns(facts);
}

function showCommand(environment: CliEnvironment): Command {
  const command = subcommand('show <group>', 'catch up and show one group');
  return onAccount(command, environment, async (session, { args }) => {
    await catchUp(session);
    const { account, out } = session;
    const group = await groupOf(account, args[0] ?? '');
    const name = await namesOf(session, (nameOf) => groupLines(group, account.id, nameOf));
    out.result(groupShape(group, account.id), () => groupLines(group, account.id, name));
  });
}

interface Properties {
  readonly name?: string;
  readonly description?: string;
  readonly capacity?: string;
  readonly policy?: string;
}

function propertiesOf({ description, capacity, policy }: Properties) {
  if (policy !== undefined && !policies.includes(policy as GroupInvitePolicy)) {
    throw new UsageError(`--policy: give one of ${policies.join(', ')}`);
  }
  return {
    ...(description !== undefined && { description }),
    ...(capacity !== undefined && { capacity: positiveNumber('--capacity', capacity) }),
    ...(policy !== undefined && { invitePolicy: policy as GroupInvitePolicy }),
  };
}

function withProperties(command: Command): Command {
  return command
    .option('--description <text>', 'what it is about')
    .option('--capacity <number>', 'largest number of members')
    .option('--policy <policy>', `members that may invite: ${policies.join(', ')}`);
}

function createCommand(environment: CliEnvironment): Command {
  const command = withProperties(subcommand('create <name...>', 'create a group')).option(
    '--relay <id>',
    'host (default: the home relay); it cannot be changed later',
  );
  return onAccount<Properties & { relay?: string }>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const relayId = options.relay;
      const facts = { name: args.join(' '), relayId, ...propertiesOf(options) };
      const group = await account.groups.create(facts, { signal });
      out.result(groupShape(group, account.id), () => [group.id]);
    },
  );
}

function updateCommand(environment: CliEnvironment): Command {
  const command = withProperties(
    subcommand('update <group>', 'change name and other properties'),
  ).option('--name <text>', 'the new name');
  return onAccount<Properties>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const { id } = await groupOf(account, args[0] ?? '');
      const facts = { ...(options.name !== undefined && { name: options.name }) };
      await account.groups.update(id, { ...facts, ...propertiesOf(options) }, { signal });
      out.result(groupShape(await account.groups.get(id), account.id), () => ['changed']);
    },
  );
}

function inviteCommand(environment: CliEnvironment): Command {
  const command = subcommand('invite <group>', 'print an invitation; anyone who has it may apply')
    .option('--for <account>', 'for this account only, once')
    .option('--uses <number>', 'largest number of accounts admitted by it')
    .option('--days <number>', 'days until it expires', '7');
  return onAccount<{ for?: string; uses?: string; days: string }>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const { id } = await groupOf(account, args[0] ?? '');
      const days = Number(options.days);
      if (!(days > 0 && days <= 36_500)) {
        throw new UsageError('--days: give a number of days, at most 36500');
      }
      const terms = {
        lifetime: Math.ceil(days * secondsPerDay),
        ...(options.for !== undefined && { invitee: await accountOf(account, options.for) }),
        ...(options.uses !== undefined && { maxUses: positiveNumber('--uses', options.uses) }),
      };
      const { invite, text } = await account.groups.invite(id, terms, { signal });
      const { invite_id, expires_at } = invite;
      out.result({ group: id, invite: text, invite_id, expires_at }, () => [text]);
    },
  );
}

function invitesCommand(environment: CliEnvironment): Command {
  const command = subcommand('invites <group>', 'show the valid invitations you may see');
  return onAccount(command, environment, async (session, { args }) => {
    const { account, out, signal } = session;
    const { id } = await groupOf(account, args[0] ?? '');
    const invites = await account.groups.listInvites(id, { signal });
    const name = await namesOf(session, (nameOf) =>
      invites.map(({ invite }) => [invite.inviter, invite.invitee ?? account.id].map(nameOf)),
    );
    const shapes = invites.map(({ invite, text, uses }) => ({ ...invite, uses, text }));
    out.result({ invites: shapes }, () =>
      columns(
        shapes.map((each) => [
          each.invite_id,
          name(each.inviter),
          each.invitee === undefined ? 'anybody' : name(each.invitee),
          `${each.uses} of ${each.invitee === undefined ? (each.max_uses ?? 'any') : 1}`,
          `until ${localTime(each.expires_at)}`,
        ]),
      ),
    );
  });
}

function revokeCommand(environment: CliEnvironment): Command {
  const command = subcommand('revoke <group> <invitation>', 'revoke an invitation, by its ID');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const [name = '', invite_id = ''] = args;
    const { id } = await groupOf(account, name);
    await account.groups.revokeInvite(id, invite_id, { signal });
    out.result({ group: id, invite_id }, () => ['revoked']);
  });
}

function joinCommand(environment: CliEnvironment): Command {
  const command = subcommand('join <invitation>', 'apply for membership');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const text = args[0] ?? '';
    const { name } = await account.groups.preview(text, { signal });
    const { id } = await account.groups.join(text, { signal });
    const group = await account.groups.get(id);
    out.result(groupShape(group, account.id), () => [
      // Quoted: the name comes from the host and is not verified.
      `applied to ${quoted(name)} (${id}); see the decision with: courier group list`,
    ]);
  });
}

function addCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'add <group>',
    'add a group you are a member of, if no other device can share it',
  ).option('--relay <id>', 'its host (default: the home relay)');
  return onAccount<{ relay?: string }>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const relayId = options.relay ?? (await account.status()).homeRelay;
    const group = await account.groups.add({ groupId: args[0] ?? '', relayId }, { signal });
    const name = await namesOf(session, (nameOf) => groupLines(group, account.id, nameOf));
    out.result(groupShape(group, account.id), () => groupLines(group, account.id, name));
  });
}

function forgetCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'forget <group>',
    'hide a group that you left, that is closed or that does not verify',
  ).option('--even-as-member', 'also a group that you cannot leave because its host is gone');
  return onAccount<{ evenAsMember?: boolean }>(
    command,
    environment,
    async ({ account, out }, { args, options: { evenAsMember = false } }) => {
      const { id } = await groupOf(account, args[0] ?? '');
      await account.groups.forget(id, { evenAsMember });
      out.result({ group: id }, () => ['forgotten']);
    },
  );
}

function membersCommand(environment: CliEnvironment): Command {
  const command = subcommand('members <group>', 'catch up and show the members');
  return onAccount(command, environment, async (session, { args }) => {
    await catchUp(session);
    const { account, out } = session;
    const { id } = await groupOf(account, args[0] ?? '');
    const members = await account.groups.listMembers(id);
    const name = await namesOf(session, (nameOf) => members.map((each) => nameOf(each.account)));
    out.result({ group: id, members: members.map(memberShape) }, () =>
      columns(
        members.map((member) => [
          member.role,
          member.account,
          aliasIn(name, member.account),
          // Quoted: members choose their nicknames freely.
          member.nickname === undefined ? '' : quoted(member.nickname),
        ]),
      ),
    );
  });
}
