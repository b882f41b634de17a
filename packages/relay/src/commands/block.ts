/** `posthouse block`: the accounts, addresses and relays that the operator refuses. */
import { AccountId, ProtocolError, RelayId } from '@posthouse/protocol';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import {
  addressToBlock,
  type Block,
  type BlockKind,
  blockAccount,
  blockAddress,
  readBlocksOf,
  unblock,
} from '../blocks/index.ts';
import { systemClock } from '../clock.ts';
import type { RelayConfig } from '../config/index.ts';
import { blockRelay, unblockRelay } from '../federation/index.ts';
import { blockAdded, blockRemoved } from '../observability/block-events.ts';
import { createLog } from '../observability/log.ts';
import {
  argument,
  asksStorage,
  configAndFlags,
  subcommand,
  withStorage,
} from './storage-command.ts';
import { instant, note, print, shortened } from './terminal-output.ts';
import { readUntil, untilMeaning } from './until.ts';

const help = `
A blocked account cannot sign in, whether it is at home here or a guest of a group or channel; its
sessions and connections end. It sends nothing to accounts here, and messages to it are refused here; its
sender is told so. What it stored stays, and others still read its posts, profile and devices.

A blocked address has its connections closed, and what a trusted proxy sends for it is refused. It is an
address or a network: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. A single IPv6 address stands for its /64,
the network of one customer. Networks with this machine's own addresses or a trusted proxy are refused.

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
  readonly json?: boolean;
}

/** What can be blocked. */
const kinds = ['account', 'address', 'relay'] as const satisfies readonly BlockKind[];

/** Completes `posthouse block`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(
      aboutOne('add', 'block an account, an address or a relay')
        .option('--reason <text>', 'why, for `block list`')
        .option('--until <time>', untilMeaning, untilOf)
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
    .argument('<id>', 'ID of an account or a relay, or an address');
}

function untilOf(text: string): number {
  const until = readUntil(text, systemClock.now());
  if (until !== undefined) return until;
  throw new InvalidArgumentError('Expected a time that has not passed, as 7d or 2027-01-31.');
}

/** Returns the ID as it is stored; ends the command if it is none. */
function idOf(kind: BlockKind, text: string, { config, of }: Called): string {
  try {
    if (kind === 'address') return addressToBlock(text, config.trustedProxies);
    return kind === 'account'
      ? argument<string>(AccountId, text, 'neo:<magic>:<address>')
      : argument<string>(RelayId, text, '0x and 40 hexadecimal digits in lower case');
  } catch (error) {
    if (error instanceof InvalidArgumentError || error instanceof ProtocolError) {
      of.error(`error: ${kind} ${JSON.stringify(text)}: ${error.message}`);
    }
    throw error;
  }
}

interface Called {
  readonly config: RelayConfig;
  readonly of: Command;
}

async function add(kind: BlockKind, text: string, of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const { reason = '', until: endsAt } = own;
  const { limits } = config;
  const id = idOf(kind, text, { config, of });
  if (Buffer.byteLength(reason) > limits.blockReason) {
    throw new Error(`--reason: over ${limits.blockReason} bytes: give a shorter one`);
  }
  const block = { relay: blockRelay, account: blockAccount, address: blockAddress }[kind];
  const options = { now: systemClock.now(), limits };
  const isNew = await withStorage(config, (storage) =>
    block(storage, { id, reason, endsAt }, options),
  );
  const { log } = config;
  if (isNew) blockAdded({ log: createLog(log) }, { kind, id, until: endsAt });
  const end = endsAt === undefined ? '' : ` until ${instant(endsAt)}`;
  print([`${kind} ${id} is blocked${isNew ? '' : ' already'}${end}`]);
}

async function remove(kind: BlockKind, text: string, of: Command): Promise<void> {
  const { config } = configAndFlags<OwnFlags>(of);
  // An address may have become a proxy's since it was blocked.
  const id = idOf(kind, text, { config: { ...config, trustedProxies: [] }, of });
  const now = systemClock.now();
  const wasBlocked = await withStorage(config, (storage) =>
    kind === 'relay' ? unblockRelay(storage, id, now) : unblock(storage, { kind, id }, now),
  );
  if (!wasBlocked) throw new Error(`${kind} ${id} is not blocked: see posthouse block list`);
  blockRemoved({ log: createLog(config.log) }, { kind, id });
  print([`${kind} ${id} is no longer blocked`]);
}

async function list(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const { blockedAccounts, blockedAddresses, blockedRelays } = config.limits;
  const now = systemClock.now();
  const blocked = await withStorage(config, (storage) =>
    storage.read(async (tx) => [
      ...(await readBlocksOf(tx, 'account', { now, limit: blockedAccounts })),
      ...(await readBlocksOf(tx, 'address', { now, limit: blockedAddresses })),
      ...(await readBlocksOf(tx, 'relay', { now, limit: blockedRelays })),
    ]),
  );
  blocked.sort((a, b) => a.createdAt - b.createdAt);
  if (own.json) print(blocked.map((block) => terminalJson(wireOf(block))));
  else if (blocked.length > 0) print(table(blocked));
  else note('nothing is blocked');
}

function table(blocked: readonly Block[]): string[] {
  const hasEnds = blocked.some(({ endsAt }) => endsAt !== undefined);
  const rows = blocked.map(({ kind, id, reason, createdAt, endsAt }) => [
    instant(createdAt),
    kind,
    id,
    ...(hasEnds ? [endsAt === undefined ? '-' : instant(endsAt)] : []),
    shortened(reason),
  ]);
  const head = ['blocked', 'kind', 'id', ...(hasEnds ? ['until'] : []), 'reason'];
  return terminalColumns([head, ...rows]);
}

function wireOf({ kind, id, reason, createdAt, endsAt }: Block): object {
  const name = kind === 'relay' ? 'relay_id' : kind;
  const until = endsAt === undefined ? {} : { until: endsAt };
  return { kind, [name]: id, reason, blocked_at: createdAt, ...until };
}
