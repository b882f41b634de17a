/** `posthouse block`: the relays that the operator refuses. */
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import { Argument, type Command } from 'commander';
import { systemClock } from '../clock.ts';
import {
  type BlockedRelay,
  blockRelay,
  listBlockedRelays,
  unblockRelay,
} from '../federation/index.ts';
import { relayBlocked, relayUnblocked } from '../observability/events.ts';
import { createLog } from '../observability/log.ts';
import {
  asksStorage,
  configAndFlags,
  relayOf,
  subcommand,
  withStorage,
} from './storage-command.ts';
import { instant, note, print, shortened } from './terminal-output.ts';

const help = `
A blocked relay is not admitted, whatever the registry says: its connections are closed, its calls and
the routes that it sends are refused, and it gets no mail. Mail that waits for it stays in the queue
until its deadline. The block is local: no other relay learns of it.

The command works whether the relay runs or not; a running relay applies it within seconds.

Exit status: 0 done, 1 failed or not blocked, 2 wrong arguments or configuration.

Examples:
  posthouse block add relay 0x0123456789abcdef0123456789abcdef01234567 --reason spam --config relay.json
  posthouse block list --config relay.json
  posthouse block remove relay 0x0123456789abcdef0123456789abcdef01234567 --config relay.json`;

interface OwnFlags {
  readonly reason?: string;
  readonly json?: boolean;
}

/** What can be blocked. */
const kinds = ['relay'] as const;

/** Completes `posthouse block`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(
      aboutOne('add', 'block a relay')
        .option('--reason <text>', 'why, for `block list`')
        .action((_kind, relayId, _, of) => add(relayId, of)),
    )
    .addCommand(
      subcommand('list', 'list what is blocked, the newest last')
        .option('--json', 'print one JSON object per line')
        .action((_, of) => list(of)),
    )
    .addCommand(
      aboutOne('remove', 'end the block of a relay').action((_kind, relayId, _, of) =>
        remove(relayId, of),
      ),
    );
}

function aboutOne(name: string, description: string): Command {
  return subcommand(name, description)
    .addArgument(new Argument('<kind>', 'what it is').choices(kinds))
    .argument('<id>', 'relay ID', relayOf);
}

async function add(relayId: string, of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const { reason = '' } = own;
  const { blockReason, blockedRelays } = config.limits;
  if (Buffer.byteLength(reason) > blockReason) {
    throw new Error(`--reason: over ${blockReason} bytes: give a shorter one`);
  }
  const isNew = await withStorage(config, (storage) =>
    blockRelay(storage, { relayId, reason }, { now: systemClock.now(), relays: blockedRelays }),
  );
  if (isNew) relayBlocked({ log: createLog(config.log) }, { relay: relayId });
  print([`relay ${relayId} is blocked${isNew ? '' : ' already'}`]);
}

async function remove(relayId: string, of: Command): Promise<void> {
  const { config } = configAndFlags<OwnFlags>(of);
  const wasBlocked = await withStorage(config, (storage) =>
    unblockRelay(storage, relayId, systemClock.now()),
  );
  if (!wasBlocked) throw new Error(`relay ${relayId} is not blocked: see posthouse block list`);
  relayUnblocked({ log: createLog(config.log) }, { relay: relayId });
  print([`relay ${relayId} is no longer blocked`]);
}

async function list(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const blocked = await withStorage(config, (storage) =>
    storage.read((tx) => listBlockedRelays(tx, config.limits.blockedRelays)),
  );
  if (own.json) print(blocked.map((relay) => terminalJson(wireOf(relay))));
  else if (blocked.length > 0) print(table(blocked));
  else note('nothing is blocked');
}

function table(blocked: readonly BlockedRelay[]): string[] {
  const rows = blocked.map(({ relayId, reason, createdAt }) => [
    instant(createdAt),
    'relay',
    relayId,
    shortened(reason),
  ]);
  return terminalColumns([['blocked', 'kind', 'id', 'reason'], ...rows]);
}

function wireOf({ relayId, reason, createdAt }: BlockedRelay): object {
  return { kind: 'relay', relay_id: relayId, reason, blocked_at: createdAt };
}
