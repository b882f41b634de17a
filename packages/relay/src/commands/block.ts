/** `posthouse block`: the accounts, addresses and relays that the operator refuses. */
import { AccountId, ChannelId, RelayId } from '@posthouse/protocol';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import { Argument, type Command } from 'commander';
import { type BlockKind, networkOf } from '../blocks/index.ts';
import { argument, asksStorage, subcommand } from './storage-command.ts';
import { instant, note, print, shortened } from './terminal-output.ts';
import { untilMeaning, untilOf } from './until.ts';
import { withVerbs } from './verb-command.ts';

const help = `
A blocked account cannot sign in, whether it is at home here or a guest of a group or channel; its
sessions and connections end. It sends nothing to accounts here, and messages to it are refused here; its
sender is told so. What it stored stays, and others still read its posts, profile and devices.

A blocked address has its connections closed, and what a trusted proxy sends for it is refused. It is an
address or a network: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. A single IPv6 address stands for its /64,
the network of one customer. Networks with this machine's own addresses or a trusted proxy are refused, and those that are
larger than a /8 of IPv4 or a /19 of IPv6 without --wide.

A blocked channel of this relay is as if it was not hosted here: nothing is read, written or subscribed.
Its posts stay until their retention is over; when the block ends, all is as it was. Copies that clients
have stay there. The reports about single posts are not dismissed: see posthouse reports.

A blocked relay is not admitted, whatever the registry says: its connections are closed, its calls and
the routes that it sends are refused, and it gets no mail. Mail that waits for it stays in the queue
until its deadline.

A block is local: no other relay learns of it. With --until it ends by itself; without, and without it
when blocked once more, it lasts until it is removed.

The command works whether the relay runs or not; a running relay applies it within two seconds.

Exit status: 0 done, 1 failed or not blocked, 2 wrong arguments or configuration.

Examples:
  posthouse block add account neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk --reason spam --config relay.json
  posthouse block add address 192.0.2.0/24 --until 7d --config relay.json
  posthouse block add relay 0x0123456789abcdef0123456789abcdef01234567 --config relay.json
  posthouse block list --config relay.json
  posthouse block remove address 192.0.2.0/24 --config relay.json`;

interface OwnFlags {
  readonly reason?: string;
  readonly until?: number;
  readonly wide?: boolean;
  readonly json?: boolean;
}

/** What can be blocked. */
const kinds = ['account', 'address', 'channel', 'relay'] as const satisfies readonly BlockKind[];

/** Completes `posthouse block`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(
      aboutOne('add', 'block an account, an address, a channel or a relay')
        .option('--reason <text>', 'why, for `block list`')
        .option('--until <time>', untilMeaning, untilOf)
        .option('--wide', 'block a network larger than a /8 of IPv4 or a /19 of IPv6')
        .action((kind, id, _, of) => add(kind, id, of)),
    )
    .addCommand(
      subcommand('list', 'list what is blocked, the newest last')
        .option('--json', 'print one JSON object per line')
        .action((_, of) => list(of)),
    )
    .addCommand(
      aboutOne('remove', 'end a block').action((kind, id, _, of) => remove(kind, id, of)),
    );
}

function aboutOne(name: string, description: string): Command {
  return subcommand(name, description)
    .addArgument(new Argument('<kind>', 'what it is').choices(kinds))
    .argument('<id>', 'ID of an account, a channel or a relay, or an address');
}

/** Ends the command with status 2 if the text names none of the kind. */
function checkId(kind: BlockKind, text: string, of: Command): void {
  try {
    if (kind === 'address') networkOf(text);
    else if (kind === 'account') argument(AccountId, text, 'neo:<magic>:<address>');
    else if (kind === 'channel') argument(ChannelId, text, 'chan_ and 22 characters');
    else argument(RelayId, text, '0x and 40 hexadecimal digits in lower case');
  } catch (error) {
    of.error(`error: ${kind} ${JSON.stringify(text)}: ${(error as Error).message}`);
  }
}

async function add(kind: BlockKind, text: string, of: Command): Promise<void> {
  checkId(kind, text, of);
  await withVerbs<OwnFlags, void>(of, async (verbs, { reason = '', until, wide }) => {
    const more = { ...(until !== undefined && { until }), ...(wide && { wide }) };
    const params = { [kind]: text, reason, ...more };
    const answer = await verbs.call('block', 'add', params);
    const already = answer.is_new === true ? '' : ' already';
    const end = until === undefined ? '' : ` until ${instant(until)}`;
    print([`${kind} ${String(answer[kind])} is blocked${already}${end}`]);
    const { rejected = 0 } = answer;
    if (rejected !== 0) note(`accounts that asked from it and do not wait any more: ${rejected}`);
  });
}

async function remove(kind: BlockKind, text: string, of: Command): Promise<void> {
  checkId(kind, text, of);
  await withVerbs(of, async (verbs) => {
    const answer = await verbs.call('block', 'remove', { [kind]: text });
    print([`${kind} ${String(answer[kind])} is no longer blocked`]);
  });
}

/** A block, as the verb lists it. */
interface ListedBlock {
  readonly kind: BlockKind;
  readonly account?: string;
  readonly address?: string;
  readonly channel?: string;
  readonly relay?: string;
  readonly reason: string;
  readonly blocked_at: number;
  readonly until?: number;
}

async function list(of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, own) => {
    const blocked = await verbs.all<ListedBlock>('block', 'list');
    blocked.sort((a, b) => a.blocked_at - b.blocked_at);
    if (own.json) print(blocked.map((block) => terminalJson(jsonOf(block))));
    else if (blocked.length > 0) print(table(blocked));
    else note('nothing is blocked');
  });
}

function table(blocked: readonly ListedBlock[]): string[] {
  const hasEnds = blocked.some(({ until }) => until !== undefined);
  const rows = blocked.map(({ kind, reason, blocked_at, until, ...ids }) => [
    instant(blocked_at),
    kind,
    ids[kind] ?? '',
    ...(hasEnds ? [until === undefined ? '-' : instant(until)] : []),
    shortened(reason),
  ]);
  const head = ['blocked', 'kind', 'id', ...(hasEnds ? ['until'] : []), 'reason'];
  return terminalColumns([head, ...rows]);
}

/** A relay is named `relay_id` here, as it was before there were verbs. */
function jsonOf({ kind, reason, blocked_at, until, ...ids }: ListedBlock): object {
  const name = kind === 'relay' ? 'relay_id' : kind;
  return { kind, [name]: ids[kind], reason, blocked_at, ...(until !== undefined && { until }) };
}
