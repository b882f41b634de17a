/** `courier group …`: members, their roles and keys, applications, and closing. */
import type { Command } from 'commander';
import type { Account } from '../../account.ts';
import { handBackGroup } from '../../groups/hand-back.ts';
import type { CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { groupOf, groupShape } from '../group-output.ts';
import { accountOf, aliasIn, namesOf } from '../names.ts';
import { columns, localTime } from '../output.ts';
import { onAccount, subcommand } from './context.ts';

interface ChangeContext {
  readonly account: Account;
  readonly id: string;
  /** Arguments after the group, as given. */
  readonly rest: readonly string[];
  /** Resolves these arguments to account IDs. */
  accounts(): Promise<string[]>;
  readonly signal: AbortSignal;
}

/** Makes a command that changes a group and then prints it. */
function changeCommand<O>(
  command: Command,
  environment: CliEnvironment,
  {
    done,
    act,
  }: { readonly done: string; readonly act: (act: ChangeContext, options: O) => Promise<void> },
): Command {
  return onAccount<O>(command, environment, async ({ account, out, signal }, { args, options }) => {
    const [name = '', ...rest] = args;
    const { id } = await groupOf(account, name);
    const accounts = () => Promise.all(rest.map((each) => accountOf(account, each)));
    await act({ account, id, rest, accounts, signal }, options);
    out.result(groupShape(await account.groups.get(id), account.id), () => [done]);
  });
}

export function groupManagementCommands(environment: CliEnvironment): Command[] {
  const simple = (
    signature: string,
    description: string,
    { done, act }: { readonly done: string; readonly act: (act: ChangeContext) => Promise<void> },
  ) => changeCommand(subcommand(signature, description), environment, { done, act });
  return [
    applicationsCommand(environment),
    simple('approve <group> <accounts...>', 'admit applicants', {
      done: 'admitted',
      act: async ({ account, id, accounts, signal }) =>
        await account.groups.approve(id, await accounts(), { signal }),
    }),
    simple('reject <group> <accounts...>', 'reject applicants', {
      done: 'rejected',
      act: async ({ account, id, accounts, signal }) =>
        await account.groups.reject(id, await accounts(), { signal }),
    }),
    simple('role <group> <member> <role>', 'make a member administrator or member', {
      done: 'changed',
      act: async ({ account, id, rest: [name = '', role], signal }) => {
        if (role !== 'administrator' && role !== 'member') {
          throw new UsageError('role: give administrator or member');
        }
        const member = { account: await accountOf(account, name), role } as const;
        await account.groups.setRole(id, member, { signal });
      },
    }),
    simple('transfer <group> <member>', 'make another member the owner', {
      done: 'transferred',
      act: async ({ account, id, rest: [name = ''], signal }) =>
        await account.groups.transfer(id, await accountOf(account, name), { signal }),
    }),
    simple('leave <group>', 'leave the group; an owner must transfer it first', {
      done: 'left',
      act: ({ account, id, signal }) => account.groups.leave(id, { signal }),
    }),
    simple('remove <group> <accounts...>', 'remove members; they may apply again', {
      done: 'removed',
      act: async ({ account, id, accounts, signal }) =>
        await account.groups.remove(id, await accounts(), { signal }),
    }),
    simple('ban <group> <accounts...>', 'ban accounts, and remove those that are members', {
      done: 'banned',
      act: async ({ account, id, accounts, signal }) =>
        await account.groups.ban(id, await accounts(), { signal }),
    }),
    simple('unban <group> <accounts...>', 'lift bans; the accounts may apply again', {
      done: 'unbanned',
      act: async ({ account, id, accounts, signal }) =>
        await account.groups.unban(id, await accounts(), { signal }),
    }),
    handBackCommand(environment),
    rotateCommand(environment),
    recoverCommand(environment),
    recoveriesCommand(environment),
    simple('close <group>', 'close the group for good', {
      done: 'closed',
      act: ({ account, id, signal }) => account.groups.close(id, { signal }),
    }),
  ];
}

function applicationsCommand(environment: CliEnvironment): Command {
  const command = subcommand('applications <group>', 'show verified applications');
  return onAccount(command, environment, async (session, { args }) => {
    const { account, out, signal } = session;
    const { id } = await groupOf(account, args[0] ?? '');
    await account.groups.sync(id, { signal });
    const pending = await account.groups.listApplications(id, { signal });
    const name = await namesOf(session, (nameOf) =>
      pending.map(({ application }) => nameOf(application.account)),
    );
    const shapes = pending.map(({ application, accepted_at }) => ({
      account: application.account,
      invite_id: application.invite_id,
      accepted_at,
    }));
    out.result({ group: id, applications: shapes }, () =>
      columns(
        shapes.map((each) => [
          localTime(each.accepted_at),
          each.account,
          aliasIn(name, each.account),
        ]),
      ),
    );
  });
}

function handBackCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'hand-back <group>',
    'give a restored host the changes that it lost, as the owner',
  );
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const { id } = await groupOf(account, args[0] ?? '');
    const changes = await handBackGroup(account, id, { signal });
    out.result({ group: id, changes }, () => [
      changes === 0 ? 'the host lost no change' : `the host has its ${changes} lost changes again`,
    ]);
  });
}

function rotateCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'rotate <group>',
    'replace the secret, or resume an interrupted replacement',
  )
    .option('--new-key', 'replace your own member key as well')
    .option('--fresh', 'discard an interrupted replacement and start anew');
  return changeCommand<{ newKey?: boolean; fresh?: boolean }>(command, environment, {
    done: 'the secret was replaced',
    act: async ({ account, id, signal }, { newKey = false, fresh = false }) => {
      await account.groups.rotate(id, { newOwnerKey: newKey, fresh, signal });
    },
  });
}

function recoverCommand(environment: CliEnvironment): Command {
  const command = subcommand('recover <group>', 'request a new key if the old one is lost');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const { id } = await groupOf(account, args[0] ?? '');
    const expires_at = await account.groups.requestRecovery(id, { signal });
    out.result({ group: id, expires_at }, () => [
      `requested; the owner or an administrator can approve it until ${localTime(expires_at)}`,
    ]);
  });
}

function recoveriesCommand(environment: CliEnvironment): Command {
  const command = subcommand('recoveries <group>', 'show, approve or reject requests for new keys')
    .option('--approve <account...>', 'approve the requests of these members')
    .option('--reject <account...>', 'reject the requests of these members, or withdraw your own');
  return onAccount<{ approve?: string[]; reject?: string[] }>(
    command,
    environment,
    async (session, { args, options }) => {
      const { account, out, signal } = session;
      const { id } = await groupOf(account, args[0] ?? '');
      await account.groups.sync(id, { signal });
      const of = (names: readonly string[]) =>
        Promise.all(names.map((each) => accountOf(account, each)));
      if (options.approve !== undefined) {
        await account.groups.approveRecovery(id, await of(options.approve), { signal });
        out.note('approved');
      }
      if (options.reject !== undefined) {
        await account.groups.rejectRecovery(id, await of(options.reject), { signal });
        out.note('rejected');
      }
      const requests = await account.groups.listRecoveries(id, { signal });
      const name = await namesOf(session, (nameOf) =>
        requests.map(({ request }) => nameOf(request.account)),
      );
      const shapes = requests.map(({ request, accepted_at, expires_at }) => ({
        account: request.account,
        accepted_at,
        expires_at,
      }));
      out.result({ group: id, requests: shapes }, () =>
        columns(
          shapes.map((each) => [
            each.account,
            aliasIn(name, each.account),
            `until ${localTime(each.expires_at)}`,
          ]),
        ),
      );
    },
  );
}
