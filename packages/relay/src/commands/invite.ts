/** `posthouse invite`: codes with which new accounts come to be at home at this relay. */
import { Type } from '@posthouse/protocol';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { mostDays, mostUses } from '../admin/index.ts';
import { systemClock } from '../clock.ts';
import { argument, asksStorage, subcommand } from './storage-command.ts';
import { instant, note, print, shortened } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

const help = `
With the setting registration "invite", the default, an account that is new here needs the code of an
invite: courier setup --invite CODE. Each use lets one account in. The code is printed once and not
stored; any holder can use it, so give it to one person, or to few. Accounts that are here already
never need one.

The command works whether the relay runs or not; a running relay knows the change at once. Each change
writes a line to the relay's log, if it has an admin interface; with --log warn the command prints it else.

Exit status: 0 done, 1 failed or no such invite, 2 wrong arguments or configuration.

Examples:
  posthouse invite create --config relay.json
  posthouse invite create --uses 30 --days 14 --note "rowing club" --config relay.json
  posthouse invite list --config relay.json
  posthouse invite revoke 0f3kq7xw --config relay.json`;

interface OwnFlags {
  readonly uses: number;
  readonly days: number;
  readonly note: string;
  readonly json?: boolean;
}

/** Completes `posthouse invite`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(
      subcommand('create', 'make an invite and print its code')
        .option('--uses <number>', 'accounts that it lets in', numberUpTo(mostUses), 1)
        .option('--days <number>', 'days until it expires', numberUpTo(mostDays), 7)
        .option('--note <text>', 'a remark, for `invite list`', '')
        .option('--json', 'print one JSON object')
        .action((_, of) => create(of)),
    )
    .addCommand(
      subcommand('list', 'list the invites, the newest last')
        .option('--json', 'print one JSON object per line')
        .action((_, of) => list(of)),
    )
    .addCommand(
      subcommand('revoke', 'end an invite; accounts that it let in stay')
        .argument('<id>', 'ID of the invite, as `invite list` shows it')
        .action((id, _, of) => revoke(id, of)),
    );
}

function numberUpTo(most: number) {
  const schema = Type.Integer({ minimum: 1, maximum: most });
  return (text: string) =>
    argument<number>(schema, /^[0-9]+$/.test(text) ? Number(text) : text, `1 to ${most}`);
}

/** An invite, as the verbs have it. */
interface Invite {
  readonly id: string;
  readonly uses: number;
  readonly used: number;
  readonly note: string;
  readonly created_at: number;
  readonly expires_at: number;
}

interface NewInvite extends Invite {
  readonly code: string;
  /** The relay's setting. */
  readonly registration: string;
}

async function create(of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, { uses, days, note: remark, json }) => {
    const made = await verbs.call('invite', 'create', { uses, days, note: remark });
    const { registration, ...invite } = made as unknown as NewInvite;
    if (json) {
      print([terminalJson(invite)]);
      return;
    }
    print([invite.code]);
    note(`invite ${invite.id}: ${usesOf(invite.uses)}, until ${instant(invite.expires_at)}`);
    remindOfMode(registration);
  });
}

/** Says so if the code will not be asked for. */
function remindOfMode(registration: string): void {
  if (registration === 'invite') return;
  note(`the setting registration is "${registration}": codes count with "invite" only`);
}

async function list(of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, own) => {
    const invites = await verbs.all<Invite>('invite', 'list');
    if (own.json) print(invites.map((invite) => terminalJson(invite)));
    else if (invites.length > 0) print(table(invites));
    else note('there are no invites: see posthouse invite create');
  });
}

async function revoke(id: string, of: Command): Promise<void> {
  await withVerbs(of, (verbs) => verbs.call('invite', 'revoke', { id }));
  print([`invite ${id} is revoked`]);
}

function table(invites: readonly Invite[]): string[] {
  const now = systemClock.now();
  const rows = invites.map(({ id, uses, used, created_at, expires_at, note: remark }) => [
    id,
    instant(created_at),
    `${used} of ${uses}`,
    expires_at > now ? instant(expires_at) : 'expired',
    shortened(remark),
  ]);
  return terminalColumns([['id', 'created', 'used', 'until', 'note'], ...rows]);
}

function usesOf(uses: number): string {
  return uses === 1 ? 'one account' : `${uses} accounts`;
}
