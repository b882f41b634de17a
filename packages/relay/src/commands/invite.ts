/** `posthouse invite`: codes with which new accounts come to be at home at this relay. */
import { Type } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { systemClock } from '../clock.ts';
import type { RelayConfig } from '../config/index.ts';
import {
  deleteInvite,
  insertInvite,
  listInvites,
  newInviteCode,
  registrations,
  type StoredInvite,
} from '../registration/index.ts';
import {
  argument,
  asksStorage,
  configAndFlags,
  subcommand,
  withStorage,
} from './storage-command.ts';
import { instant, note, print, shortened } from './terminal-output.ts';

const help = `
With the setting registration "invite", the default, an account that is new here needs the code of an
invite: courier setup --invite CODE. Each use lets one account in. The code is printed once and not
stored; any holder can use it, so give it to one person, or to few. Accounts that are here already
never need one.

The command works whether the relay runs or not; a running relay knows the change at once.

Exit status: 0 done, 1 failed or no such invite, 2 wrong arguments or configuration.

Examples:
  posthouse invite create --config relay.json
  posthouse invite create --uses 30 --days 14 --note "rowing club" --config relay.json
  posthouse invite list --config relay.json
  posthouse invite revoke 0f3kq7xw --config relay.json`;

const mostUses = 1_000_000;
const mostDays = 3_650;
const secondsOfDay = 86_400;

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

async function create(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const { registrationInvites, registrationInviteNote } = config.limits;
  if (Buffer.byteLength(own.note) > registrationInviteNote) {
    throw new Error(`--note: over ${registrationInviteNote} bytes: give a shorter one`);
  }
  const { code, id, digest } = newInviteCode(nodeRandom);
  const now = systemClock.now();
  const invite = {
    ...{ id, digest, uses: own.uses, used: 0, note: own.note },
    ...{ createdAt: now, expiresAt: now + own.days * secondsOfDay },
  };
  const hasRoom = await withStorage(config, (storage) =>
    storage.write(registrations, (tx) => insertInvite(tx, invite, registrationInvites)),
  );
  if (!hasRoom) {
    throw new Error(
      `${registrationInvites} invites are stored: revoke some, or raise limits.registrationInvites`,
    );
  }
  if (own.json) {
    print([terminalJson({ code, ...wireOf(invite) })]);
    return;
  }
  print([code]);
  note(`invite ${id}: ${usesOf(invite.uses)}, until ${instant(invite.expiresAt)}`);
  remindOfMode(config);
}

/** Says so if the code will not be asked for. */
function remindOfMode({ registration }: RelayConfig): void {
  if (registration === 'invite') return;
  note(`the setting registration is "${registration}": codes count with "invite" only`);
}

async function list(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const invites = await withStorage(config, (storage) =>
    storage.read((tx) => listInvites(tx, config.limits.registrationInvites)),
  );
  if (own.json) print(invites.map((invite) => terminalJson(wireOf(invite))));
  else if (invites.length > 0) print(table(invites));
  else note('there are no invites: see posthouse invite create');
}

async function revoke(id: string, of: Command): Promise<void> {
  const { config } = configAndFlags<OwnFlags>(of);
  const wasThere = await withStorage(config, (storage) =>
    storage.write(registrations, (tx) => deleteInvite(tx, id)),
  );
  if (!wasThere) throw new Error('there is no such invite: see posthouse invite list');
  print([`invite ${id} is revoked`]);
}

function table(invites: readonly StoredInvite[]): string[] {
  const now = systemClock.now();
  const rows = invites.map(({ id, uses, used, createdAt, expiresAt, note: remark }) => [
    id,
    instant(createdAt),
    `${used} of ${uses}`,
    expiresAt > now ? instant(expiresAt) : 'expired',
    shortened(remark),
  ]);
  return terminalColumns([['id', 'created', 'used', 'until', 'note'], ...rows]);
}

function wireOf({ id, uses, used, note: remark, createdAt, expiresAt }: StoredInvite): object {
  return { id, uses, used, note: remark, created_at: createdAt, expires_at: expiresAt };
}

function usesOf(uses: number): string {
  return uses === 1 ? 'one account' : `${uses} accounts`;
}
