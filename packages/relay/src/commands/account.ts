/** `posthouse account`: which accounts the operator lets in, and which are here. */

import { AccountId } from '@posthouse/protocol';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { deleteCommand } from './delete-account.ts';
import { exportCommand } from './export-account.ts';
import { addOwnerCommands } from './owners-view.ts';
import { accountOf } from './reports-arguments.ts';
import { asksStorage, subcommand } from './storage-command.ts';
import { instant, note, print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

const help = `
An account that is let in may come to be at home at this relay once, with any client, whatever the
setting registration is, except "closed". With "approval", accounts that tried are listed by
\`account waiting\`, for limits.registrationRequestPeriod; the person sets the account up again after the
approval. Accounts that are here already need no right. An account that was rejected may ask again.

The command works whether the relay runs or not; a running relay knows the change at once. Each change
writes a line to the relay's log, if it has an admin interface; with --log warn the command prints it else.

The address of a request is that of the client: an IPv6 address stands for its /64.

Exit status: 0 done, 1 failed or no such account, 2 wrong arguments or configuration.

list has all accounts that are, or were, at home here; home is the relay of their route.

Examples:
  posthouse account waiting --config relay.json
  posthouse account approve neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk --config relay.json
  posthouse account allow neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk --config relay.json`;

interface OwnFlags {
  readonly json?: boolean;
}

/** Completes `posthouse account`. */
export function configure(command: Command): void {
  const account = asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(aboutOne('allow', 'let an account in', 'is let in'))
    .addCommand(
      aboutOne(
        'disallow',
        'let an account in no longer, if it is not here yet',
        'is no longer let in',
      ),
    )
    .addCommand(
      lists('allowed', 'list the accounts that are let in and are not here yet').action((_, of) =>
        allowed(of),
      ),
    )
    .addCommand(aboutOne('approve', 'let an account in that waits for it', 'is let in'))
    .addCommand(deleteCommand())
    .addCommand(exportCommand())
    .addCommand(rejectCommand())
    .addCommand(
      lists('waiting', 'list the accounts that wait for approval').action((_, of) => waiting(of)),
    );
  addOwnerCommands(account, {
    ...{ kind: 'account', member: 'account', id: AccountId, form: 'neo:<magic>:<address>' },
    columns: ['home', 'devices', 'attachment_bytes'],
  });
}

function aboutOne(name: string, description: string, done: string): Command {
  return subcommand(name, description)
    .argument('<account>', 'ID of the account', accountOf)
    .action((account, _, of) => change(of, name, { account, done }));
}

function rejectCommand(): Command {
  return subcommand('reject', 'remove an account, or all of a network, from those that wait')
    .argument('[account]', 'ID of the account', accountOf)
    .option('--address <address>', 'all that asked from an address or network, as 2001:db8::/48')
    .action((account: string | undefined, _, of) => reject(of, account));
}

async function reject(of: Command, account: string | undefined): Promise<void> {
  const { address } = of.opts<{ readonly address?: string }>();
  if ((account === undefined) === (address === undefined)) {
    of.error('error: give an account or --address', { exitCode: 2 });
  }
  if (account !== undefined) return await change(of, 'reject', { account, done: 'is rejected' });
  await withVerbs(of, async (verbs) => {
    const { address: network, rejected } = await verbs.call('account', 'reject', { address });
    print([`${rejected} accounts that asked from ${network} are rejected`]);
  });
}

function lists(name: string, description: string): Command {
  return subcommand(name, description).option('--json', 'print one JSON object per line');
}

/** An account that is let in, as the verbs list it. */
interface Allowed {
  readonly account: string;
  readonly allowed_at: number;
}

/** An account that waits, as the verbs list it. */
interface Waiting {
  readonly account: string;
  readonly address: string;
  readonly asked_at: number;
}

async function change(
  of: Command,
  name: string,
  { account, done }: { readonly account: string; readonly done: string },
): Promise<void> {
  await withVerbs(of, async (verbs) => {
    const { is_here } = await verbs.call('account', name, { account });
    print([`${account} ${is_here === true ? 'is here already: it needs no right' : done}`]);
  });
}

async function list<Item extends object>(
  of: Command,
  {
    name,
    none,
    headings,
    cells,
  }: {
    readonly name: string;
    readonly none: string;
    readonly headings: string[];
    readonly cells: (item: Item) => string[];
  },
): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, own) => {
    const items = await verbs.all<Item>('account', name);
    if (own.json) print(items.map((item) => terminalJson(item)));
    else if (items.length === 0) note(none);
    else print(terminalColumns([headings, ...items.map(cells)]));
  });
}

const allowed = (of: Command) =>
  list<Allowed>(of, {
    name: 'allowed',
    none: 'no account is let in',
    headings: ['since', 'account'],
    cells: ({ allowed_at, account }) => [instant(allowed_at), account],
  });

const waiting = (of: Command) =>
  list<Waiting>(of, {
    name: 'waiting',
    none: 'no account is waiting',
    headings: ['asked', 'address', 'account'],
    cells: ({ asked_at, address, account }) => [instant(asked_at), address, account],
  });
