/** `posthouse peers`: arguments and output; federation/ and messages/ read and change the rows. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { readBlocksOf } from '../blocks/index.ts';
import { systemClock } from '../clock.ts';
import type { RelayConfig } from '../config/index.ts';
import { readConnections, readKnownRelays, retryRelay } from '../federation/index.ts';
import { readWaitingMail } from '../messages/index.ts';
import { type PeerFacts, peerTable, peerViews, unlocatedNote, wireOfPeer } from './peers-view.ts';
import {
  asksStorage,
  configAndFlags,
  relayOf,
  subcommand,
  withStorage,
} from './storage-command.ts';
import { note, print } from './terminal-output.ts';

const help = `
One line for each relay that the registry names, and for each other one that is blocked or for which
mail waits. States:
  connected     this relay has a connection with it; 1/2 if only one of two processes has
  failing       it cannot be reached, or does not answer; it is tried again at the next try
  disconnected  there is no connection, and the last attempt did not fail, or there was none
  disabled, suspended  the registry says so
  blocked       posthouse block has it
  unlisted      the registry does not name it

The command works whether the relay runs or not: if it does not run, none is connected. After a crash
relays are listed as connected for up to three minutes.

Exit status: 0 done, 1 failed or no such relay, 2 wrong arguments or configuration.

Examples:
  posthouse peers --config relay.json
  posthouse peers --json --config relay.json
  posthouse peers retry 0x0123456789abcdef0123456789abcdef01234567 --config relay.json`;

interface OwnFlags {
  readonly json?: boolean;
}

/** Completes `posthouse peers`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after `retry` belong to `retry`.
    .enablePositionalOptions()
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', help)
    .action((_, of) => list(of))
    .addCommand(
      subcommand('retry', 'try a failing relay again now, not at its next try')
        .argument('<relay>', 'relay ID', relayOf)
        .action((relayId, _, of) => retry(relayId, of)),
    );
}

async function list(of: Command): Promise<void> {
  const { config, own } = configAndFlags<OwnFlags>(of);
  const facts = await readFacts(config);
  const views = peerViews(facts);
  const unlocated = unlocatedNote(facts);
  if (own.json) print(views.map((view) => terminalJson(wireOfPeer(view))));
  else if (views.length > 0) print(peerTable(views, systemClock.now()));
  else note('no other relay is known');
  if (unlocated !== undefined) note(unlocated);
}

/** Reads everything at one time. */
async function readFacts(config: RelayConfig): Promise<PeerFacts> {
  const { federationRegistryRelays, blockedRelays } = config.limits;
  return await withStorage(config, (storage) =>
    storage.read(async (tx) => ({
      known: await readKnownRelays(tx, federationRegistryRelays),
      blocked: await readBlocksOf(tx, 'relay', { now: systemClock.now(), limit: blockedRelays }),
      mail: await readWaitingMail(tx),
      connections: await readConnections(tx, systemClock.now()),
    })),
  );
}

async function retry(relayId: string, of: Command): Promise<void> {
  const { config } = configAndFlags<OwnFlags>(of);
  const result = await withStorage(config, (storage) =>
    retryRelay(storage, relayId, systemClock.now()),
  );
  switch (result) {
    case 'not_known':
      throw new Error(`relay ${relayId} is not known: see posthouse peers`);
    case 'blocked':
      throw new Error(`relay ${relayId} is blocked: end that with posthouse block remove`);
    case 'not_failing':
      return print([`relay ${relayId} does not fail: there is nothing to retry`]);
    case 'retried':
      return print([`relay ${relayId} is tried again within a minute, if this relay runs`]);
  }
}
