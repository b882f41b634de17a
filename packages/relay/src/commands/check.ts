/** `posthouse check`. */
import type { Command } from 'commander';
import { type CheckFlags, endingHelp, outcomesHelp, printChecks } from './print-checks.ts';
import { asksStorage } from './storage-command.ts';

const help = `${outcomesHelp}
${endingHelp}

Examples:
  posthouse check --config relay.json
  posthouse check --json --config relay.json`;

/** Completes `posthouse check`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', help)
    .action((flags: CheckFlags) => printChecks(flags, { network: false }));
}
