/** `posthouse check`. */
import type { Command } from 'commander';
import { type CheckFlags, endingHelp, outcomesHelp, printChecks } from './print-checks.ts';
import { asksStorage } from './storage-command.ts';

const help = `${outcomesHelp}

It asks this machine, the registry, the relay under its public address (certificate, descriptor,
WebSocket, what a proxy says of clients), and other relays for the time.
${endingHelp}

Examples:
  posthouse check --config relay.json
  posthouse check --local --config relay.json
  posthouse check --json --config relay.json`;

/** Completes `posthouse check`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--local', 'ask this machine alone: no registry, no public address')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', help)
    .action(({ local, ...flags }: CheckFlags) =>
      printChecks(flags, local === true ? 'local' : 'network'),
    );
}
