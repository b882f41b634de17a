/** `posthouse doctor`. */
import type { Command } from 'commander';
import { type CheckFlags, endingHelp, outcomesHelp, printChecks } from './print-checks.ts';
import { asksStorage } from './storage-command.ts';

const help = `${outcomesHelp}

In addition to \`posthouse check\` it has other relays dial this one at the addresses of its descriptor.
They do that once in a minute.
${endingHelp}

Examples:
  posthouse doctor --config relay.json
  posthouse doctor --json --config relay.json`;

/** Completes `posthouse doctor`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', help)
    .action((flags: CheckFlags) => printChecks(flags, 'relays'));
}
