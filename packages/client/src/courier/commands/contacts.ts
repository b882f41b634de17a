import type { Command } from 'commander';
import { isClientError } from '../../errors.ts';
import type { CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { contactShape, contactState } from '../json-shapes.ts';
import { accountOf, aliasIn, checkLocalName, nameAndId, namesOf } from '../names.ts';
import { columns, oneLine, printable, quoted } from '../output.ts';
import { onAccount, subcommand, withOptions, withVerbs } from './context.ts';

const secondsPerDay = 86_400;

interface InviteOptions {
  readonly days: string;
  readonly qr?: boolean;
  readonly document?: boolean;
}

export function inviteCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .option('--days <number>', 'days until it expires', '7')
    .option('--qr', 'draw it as a QR code, too')
    .option('--document', 'write it as JSON, for other clients of the network');
  return onAccount<InviteOptions>(command, environment, async ({ account, out }, context) => {
    const { options } = context;
    const days = Number(options.days);
    if (!(days > 0 && days <= 36_500)) {
      throw new UsageError('--days: give a number of days, at most 36500');
    }
    const lifetime = Math.ceil(days * secondsPerDay);
    const { text, invite: document } = await account.contacts.invite({ lifetime });
    // Loaded here: only this option needs the library.
    const code = options.qr && !out.isJson ? (await import('../qr-code.ts')).qrCode(text) : [];
    out.result({ invite: text, document }, () => [
      ...code,
      options.document ? JSON.stringify(document) : text,
    ]);
  });
}

export function acceptCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .option('--note <text>', 'a line for the other account')
    .option('--as <name>', 'local name of the contact');
  return onAccount<{ note?: string; as?: string }>(
    command,
    environment,
    async (session, { options, args }) => {
      const { account, out, signal } = session;
      const [text = ''] = args;
      const { note } = options;
      await account.sync({ signal });
      const isInvite = text.includes('-invite:') || text.trimStart().startsWith('{');
      const id = isInvite ? account.contacts.preview(text).inviter : await accountOf(account, text);
      if (options.as !== undefined) await checkLocalName(account, id, options.as);
      if (isInvite) await account.contacts.join(text, { note, signal });
      else await account.contacts.request(id, { note, signal });
      if (options.as !== undefined) await account.contacts.rename(id, options.as);
      await account.sync({ signal });
      const contact = await account.contacts.get(id);
      const standing = contactState(contact);
      const who = await nameAndId(session, id);
      out.result(contactShape(contact), () => [
        standing === 'active' ? `${who} is a contact` : `asked ${who}; waiting for the answer`,
      ]);
    },
  );
}

export function rejectCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base);
  return onAccount(command, environment, async ({ account, out }, { args }) => {
    const id = await accountOf(account, args[0] ?? '');
    await account.contacts.reject(id);
    out.result(contactShape(await account.contacts.get(id)), () => [`rejected ${id}`]);
  });
}

/** Adds all its verbs to `courier contacts`. */
export function contactsCommand(base: Command, environment: CliEnvironment): Command {
  const verbs = [listCommand, renameCommand, removeCommand, blockCommand, unblockCommand];
  return withVerbs(
    base,
    verbs.map((make) => make(environment)),
  );
}

function listCommand(environment: CliEnvironment): Command {
  const command = subcommand('list', 'catch up and show contacts, and requests in both directions');
  return onAccount(command, environment, async (session) => {
    const { account, out, signal } = session;
    await account.sync({ signal }).catch((error: unknown) => {
      if (signal.aborted || !isClientError(error, 'relay_unreachable')) throw error;
      out.note('The relay cannot be reached; this is the stored state. Try again later.');
    });
    const contacts = (await account.contacts.list()).filter(({ status }) => status !== 'removed');
    const name = await namesOf(session, (nameOf) => contacts.map((each) => nameOf(each.account)));
    out.result({ contacts: contacts.map(contactShape) }, () =>
      columns(
        contacts.map((contact) => [
          contact.status,
          contact.account,
          oneLine(contact.alias || profileName(name, contact.account)),
          // Quoted, so that a note cannot pass for a local name.
          contact.note === undefined ? '' : quoted(contact.note),
        ]),
      ),
    );
  });
}

/** Returns the profile's name, in quotes; empty if there is none. */
function profileName(name: (id: string) => string, account: string): string {
  return aliasIn(name, account).replace(/ \(….*\)$/, '');
}

function removeCommand(environment: CliEnvironment): Command {
  const command = subcommand('remove <account>', 'remove a contact');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const id = await accountOf(account, args[0] ?? '');
    await account.contacts.remove(id);
    await account.sync({ signal });
    out.result(contactShape(await account.contacts.get(id)), () => [
      `${id} is no longer a contact`,
    ]);
  });
}

function blockCommand(environment: CliEnvironment): Command {
  const command = subcommand('block <account>', 'drop requests and messages of an account');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const id = await accountOf(account, args[0] ?? '');
    await account.contacts.block(id);
    await account.sync({ signal });
    out.result(contactShape(await account.contacts.get(id)), () => [`${id} is blocked`]);
  });
}

function unblockCommand(environment: CliEnvironment): Command {
  const command = subcommand('unblock <account>', 'let an account send requests again');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const id = await accountOf(account, args[0] ?? '');
    await account.contacts.unblock(id);
    await account.sync({ signal });
    out.result(contactShape(await account.contacts.get(id)), () => [`${id} is not blocked`]);
  });
}

function renameCommand(environment: CliEnvironment): Command {
  const command = subcommand('rename <account> <name>', 'give a contact a local name');
  return onAccount(command, environment, async ({ account, out, signal }, { args }) => {
    const [name = '', alias = ''] = args;
    const id = await accountOf(account, name);
    await checkLocalName(account, id, alias);
    await account.contacts.rename(id, alias);
    await account.sync({ signal });
    out.result(contactShape(await account.contacts.get(id)), () => [
      `${id} is now ${printable(alias)}`,
    ]);
  });
}
