/** `posthouse peers`: arguments and output; federation/ and messages/ read and change the rows. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { systemClock } from '../clock.ts';
import { type Peer, peerTable, type UnlocatedMail, unlocatedNote } from './peers-view.ts';
import { asksStorage, relayOf, subcommand } from './storage-command.ts';
import { note, print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

const help = `
One line for each relay that the registry names, and for each other one that is blocked or for which
mail waits. States:
  connected     this relay has a connection with it; 1/2 if only one of two processes has
  failing       it cannot be reached, or does not answer; it is tried again at the next try
  disconnected  there is no connection, and the last attempt did not fail, or there was none
  disabled, suspended  the registry says so
  blocked       posthouse block has it
  unlisted      the registry does not name it

Mail is counted up to 500 messages for each relay: 500+ is more, and the oldest is that of those counted.

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
  await withVerbs<OwnFlags, void>(of, async (verbs, own) => {
    const { processes, unlocated } = await verbs.call('peer', 'list', { limit: 1 });
    const found = await verbs.all<Peer>('peer', 'list');
    const key = ({ name, relay_id }: Peer) => `${name} ${relay_id}`;
    const peers = found.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
    if (own.json) print(peers.map((peer) => terminalJson(peer)));
    else if (peers.length > 0) {
      print(peerTable(peers, { now: systemClock.now(), processes: Number(processes) }));
    } else note('no other relay is known');
    if (unlocated !== null) note(unlocatedNote(unlocated as unknown as UnlocatedMail));
  });
}

async function retry(relayId: string, of: Command): Promise<void> {
  await withVerbs(of, async (verbs) => {
    const { is_retried } = await verbs.call('peer', 'retry', { relay_id: relayId });
    print([
      is_retried === true
        ? `relay ${relayId} is tried again within a minute, if this relay runs`
        : `relay ${relayId} does not fail: there is nothing to retry`,
    ]);
  });
}
