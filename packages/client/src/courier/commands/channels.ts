/** `courier channel …`: channels, their properties and moderators, and following. */
import type { Command } from 'commander';
import type { Channel } from '../../api/channels.ts';
import { addressOf, channelOf, channelShape } from '../channel-output.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { accountOf, namesOf } from '../names.ts';
import { columns, oneLine } from '../output.ts';
import { channelTimelineCommands } from './channel-timeline.ts';
import { onAccount, subcommand, withVerbs } from './context.ts';
import { catchUp } from './group-timeline.ts';

/** Adds all its verbs to `courier channel`. */
export function channelCommand(base: Command, environment: CliEnvironment): Command {
  const verbs = [
    listCommand,
    showCommand,
    createCommand,
    updateCommand,
    closeCommand,
    followCommand,
    unfollowCommand,
  ];
  return withVerbs(base, [
    ...verbs.map((make) => make(environment)),
    ...channelTimelineCommands(environment),
  ]);
}

function listCommand(environment: CliEnvironment): Command {
  const command = subcommand('list', 'catch up and show the channels you follow or own');
  return onAccount(command, environment, async (session) => {
    await catchUp(session);
    const { account, out } = session;
    const channels = await account.channels.list();
    out.result({ channels: channels.map(channelShape) }, () =>
      columns(
        channels.map(({ id, role, followState, descriptor }) => [
          id,
          descriptor.status === 'closed' ? 'closed' : followState,
          role,
          oneLine(descriptor.name),
        ]),
      ),
    );
  });
}

function channelLines(channel: Channel, name: (id: string) => string): string[] {
  const { id, relayId, followState, role, descriptor, span, link } = channel;
  const { description = '', moderators = [] } = descriptor;
  const facts: [string, string][] = [
    ['channel', id],
    ['name', oneLine(descriptor.name)],
    ...(description === '' ? [] : [['about', oneLine(description)] as [string, string]]),
    ['host', relayId],
    ['status', descriptor.status],
    ['owner', name(descriptor.creator)],
    ['moderators', moderators.map(name).join(', ') || 'none'],
    ['own role', role],
    ['standing', followState],
    ['read', span === undefined ? 'nothing yet' : `from ${span.first} to ${span.position}`],
    ['link', link],
  ];
  return columns(facts);
}

async function showChannel(session: AccountSession, id: string): Promise<void> {
  const { account, out } = session;
  const channel = await account.channels.get(id);
  const name = await namesOf(session, (nameOf) => channelLines(channel, nameOf));
  out.result(channelShape(channel), () => channelLines(channel, name));
}

function showCommand(environment: CliEnvironment): Command {
  const command = subcommand('show <channel>', 'catch up and show one channel');
  return onAccount(command, environment, async (session, { args }) => {
    await catchUp(session);
    const { id } = await channelOf(session.account, args[0] ?? '');
    await showChannel(session, id);
  });
}

interface CreateOptions {
  readonly description?: string;
  readonly moderator?: readonly string[];
  readonly relay?: string;
}

function createCommand(environment: CliEnvironment): Command {
  const command = subcommand('create <name...>', 'create a channel')
    .option('--description <text>', 'what it is about')
    .option('--moderator <account...>', 'account that may write in it, in addition to you')
    .option('--relay <id>', 'host (default: the home relay); it cannot be changed later');
  return onAccount<CreateOptions>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const { description, moderator = [], relay: relayId } = options;
      const moderators = await accountsOf(account, moderator);
      const facts = {
        name: args.join(' '),
        ...{ description, relayId },
        ...(moderators.length > 0 && { moderators }),
      };
      const channel = await account.channels.create(facts, { signal });
      out.result(channelShape(channel), () => [channel.id, channel.link]);
    },
  );
}

function accountsOf(account: AccountSession['account'], names: readonly string[]) {
  return Promise.all(names.map((each) => accountOf(account, each)));
}

interface UpdateOptions {
  readonly name?: string;
  /** `false` for `--no-description`. */
  readonly description?: string | boolean;
  readonly moderators?: readonly string[] | boolean;
}

function updateCommand(environment: CliEnvironment): Command {
  const command = subcommand('update <channel>', 'change name, description or moderators')
    .option('--name <text>', 'the new name')
    .option('--description <text>', 'what it is about')
    .option('--no-description', 'remove the description')
    .option('--moderators <account...>', 'all accounts that may write in it, in addition to you')
    .option('--no-moderators', 'remove all moderators');
  return onAccount<UpdateOptions>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const { id } = await channelOf(account, args[0] ?? '');
      const { name, description, moderators } = options;
      const facts = {
        ...(name !== undefined && { name }),
        ...(typeof description === 'string' && { description }),
        ...(description === false && { description: null }),
        ...(Array.isArray(moderators) && { moderators: await accountsOf(account, moderators) }),
        ...(moderators === false && { moderators: null }),
      };
      if (Object.keys(facts).length === 0) {
        throw new UsageError('nothing to change: give --name, --description or --moderators');
      }
      const channel = await account.channels.update(id, facts, { signal });
      out.result(channelShape(channel), () => ['changed']);
    },
  );
}

function closeCommand(environment: CliEnvironment): Command {
  const command = subcommand('close <channel>', 'close your own channel for good');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const { id } = await channelOf(account, args[0] ?? '');
    const channel = await account.channels.close(id, { signal });
    out.result(channelShape(channel), () => ['closed']);
  });
}

interface FollowOptions {
  readonly relay?: string;
  readonly fromCreation?: boolean;
}

function followCommand(environment: CliEnvironment): Command {
  const command = subcommand('follow <channel>', 'follow a channel, by its link or its ID')
    .option('--relay <id>', 'host of an ID (default: the home relay)')
    .option('--from-creation', 'read the whole timeline instead of the latest page onward');
  return onAccount<FollowOptions>(command, environment, async (session, { options, args }) => {
    const { account, signal } = session;
    const address = await addressOf(account, args[0] ?? '', options.relay);
    const from = options.fromCreation === true ? 'creation' : 'latest';
    const { id } = await account.channels.follow(address, { from, signal });
    await showChannel(session, id);
  });
}

function unfollowCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'unfollow <channel>',
    'stop reading a channel and remove what was read',
  );
  return onAccount(command, environment, async ({ account, out }, { args }) => {
    const { id } = await channelOf(account, args[0] ?? '');
    await account.channels.unfollow(id);
    out.result({ channel: id }, () => ['unfollowed']);
  });
}
