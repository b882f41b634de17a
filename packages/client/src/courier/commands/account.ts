/** Commands on the account itself: identity, status, sync, profile, account key. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { accountKeys } from '../../accounts/account-rows.ts';
import { ClientError } from '../../errors.ts';
import { SqliteStore } from '../../store/sqlite.ts';
import { writeWallet } from '../account-key.ts';
import { type CliEnvironment, settingsInForce } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { statusShape } from '../json-shapes.ts';
import { noteEvent } from '../message-output.ts';
import { accountOf } from '../names.ts';
import { columns, localTime, oneLine } from '../output.ts';
import { type GlobalOptions, networkOf } from '../settings.ts';
import { onAccount, onAction, subcommand, withOptions } from './context.ts';

export function whoamiCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base);
  return onAccount(command, environment, async ({ account, out }) => {
    const { homeRelay } = await account.status();
    out.result(
      {
        account: account.id,
        device: account.deviceId,
        public_key: account.publicKey,
        relay: homeRelay,
      },
      () =>
        columns([
          ['account', account.id],
          ['device', account.deviceId],
          ['public key', account.publicKey],
          ['relay', homeRelay],
        ]),
    );
  });
}

export function statusCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base);
  return onAccount(command, environment, async ({ account, out }) => {
    const status = await account.status();
    const move = await account.home.unfinishedMove();
    out.result({ ...statusShape(status), ...(move !== undefined && { move_to: move.to }) }, () =>
      columns([
        ['account', status.account],
        ['device', status.deviceId],
        ['relay', status.homeRelay],
        ['read up to', status.position === -1 ? 'nothing yet' : String(status.position)],
        ['lost by the relay', status.hasGap ? 'yes' : 'no'],
        ['to send or confirm', String(status.outbox + status.pendingTasks)],
        ...(move === undefined ? [] : [['not finished', `a move: courier move --to ${move.to}`]]),
      ]),
    );
  });
}

export function syncCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base).option(
    '--all-relays',
    'also read the timelines that former home relays still hold',
  );
  return onAccount<{ allRelays?: boolean }>(command, environment, async (session, { options }) => {
    const { account, out, signal } = session;
    const events = await account.sync({ signal, formerRelays: options.allRelays === true });
    const messages = events.filter(({ kind }) => kind === 'message').length;
    const requests = events.filter(({ kind }) => kind === 'contact-request').length;
    out.result({ messages, requests, events: events.length }, () => [
      `${messages} new messages, ${requests} new requests`,
    ]);
    for (const event of events) await noteEvent(session, event);
  });
}

interface ProfileOptions extends GlobalOptions {
  readonly nickname?: string;
  readonly bio?: string;
  readonly public?: boolean;
}

export function profileCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .option('--nickname <name>', 'publish this name')
    .option('--bio <text>', 'publish this text')
    .option('--public', 'let anyone who knows the account ask to become a contact')
    .option('--no-public', 'require an invite for that');
  return onAccount<ProfileOptions>(
    command,
    environment,
    async ({ account, out, signal }, { options, args }) => {
      const name = args[0] === '' || args[0] === undefined ? 'me' : args[0];
      const id = await accountOf(account, name);
      const { nickname, bio, public: discovery } = options;
      const changes = nickname !== undefined || bio !== undefined || discovery !== undefined;
      if (changes && id !== account.id) {
        throw new UsageError('only your own profile can be changed: leave out the account');
      }
      const found = await account.profiles.resolve(id, { signal });
      const profile = changes
        ? await account.profiles.publish(
            {
              ...(found?.avatar !== undefined && { avatar: found.avatar }),
              ...withText('nickname', nickname ?? found?.nickname),
              ...withText('bio', bio ?? found?.bio),
              public_discovery: discovery ?? found?.public_discovery ?? false,
            },
            { signal },
          )
        : found;
      out.result({ account: id, profile: profile ?? null }, () =>
        profile === undefined
          ? [`${id} has no profile`]
          : columns([
              ['account', id],
              ['nickname', oneLine(profile.nickname ?? '')],
              ['bio', oneLine(profile.bio ?? '')],
              ['public', profile.public_discovery ? 'yes' : 'no'],
              ['updated', localTime(profile.updated_at)],
            ]),
      );
    },
  );
}

function withText<N extends string>(name: N, text: string | undefined): { [K in N]?: string } {
  return (text === undefined || text === '' ? {} : { [name]: text }) as { [K in N]?: string };
}

/** Adds its verb to `courier key`. */
export function keyCommand(base: Command, environment: CliEnvironment): Command {
  // No verb is the default one: a secret is printed only if it is asked for.
  return base.addCommand(keyExportCommand(environment));
}

interface ExportOptions extends GlobalOptions {
  readonly wallet?: string;
}

/** The one command that prints a secret. */
function keyExportCommand(environment: CliEnvironment): Command {
  const command = subcommand(
    'export',
    'print the account key stored in the folder: a secret; or write it to a wallet',
  ).option('--wallet <file>', 'write a NEP-6 wallet instead, encrypted with a password');
  return onAction<ExportOptions>(command, environment, async ({ options, out, folder }) => {
    const settings = settingsInForce(options, environment.env);
    await using store = SqliteStore.open(join(folder, 'store.sqlite'));
    const key = await store.read((tx) => accountKeys.get(tx, 'account'));
    if (key === undefined) {
      throw new ClientError(
        'account_key_required',
        'no account key is stored in this folder: use the folder in which setup made it',
      );
    }
    const { wallet: path } = options;
    if (path === undefined) {
      out.result({ account_private_key: key }, () => [key]);
      return;
    }
    const address = await writeWallet(path, { key, network: networkOf(settings), environment });
    out.result({ wallet: path, address }, () => [`${path}  ${address}`]);
    out.note('Any holder of this file can try passwords: keep both safe, in two places.');
  });
}
