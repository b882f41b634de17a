/** `posthouse check` and `posthouse doctor`: arguments and output; operations/ has the checks. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { relayMigrations } from '../modules.ts';
import { type CheckResult, type Outcome, runChecks } from '../operations/checks/index.ts';
import { configFrom, type Flags } from './config-flags.ts';
import { command } from './storage-command.ts';
import { oneLine, print } from './terminal-output.ts';

const outcomes = `
Each check has an outcome, what was seen and, if something is wrong, what to do:
  ok       as it should be
  warning  works, but needs your attention
  failed   does not work
  skipped  was not checked, and why`;

const ending = `
The command works whether the relay runs or not, changes nothing, and says so if the relay does not
run. It needs the configuration that the relay runs with.

Exit status: 0 without a failed check, 1 with one, 2 wrong arguments.`;

const checkHelp = `${outcomes}
${ending}

Examples:
  posthouse check --config relay.json
  posthouse check --json --config relay.json`;

const doctorHelp = `${outcomes}

In addition to \`posthouse check\` it asks other machines: the registry, this relay under its public
name, and other relays, which dial this one at the addresses of its descriptor. Other relays do that
once in a minute.
${ending}

Examples:
  posthouse doctor --config relay.json
  posthouse doctor --json --config relay.json`;

interface OwnFlags {
  readonly json?: boolean;
}

/** Creates `posthouse check`. */
export function checkCommand(): Command {
  return command('check', 'check configuration, folder, keys, database and clock on this machine')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', checkHelp)
    .action((flags: Flags & OwnFlags) => run(flags, { network: false }));
}

/** Creates `posthouse doctor`. */
export function doctorCommand(): Command {
  return command('doctor', 'check the relay on this machine, and as other machines see it')
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', doctorHelp)
    .action((flags: Flags & OwnFlags) => run(flags, { network: true }));
}

async function run(
  { json, ...flags }: Flags & OwnFlags,
  { network }: { readonly network: boolean },
): Promise<void> {
  const counts: Record<Outcome, number> = { ok: 0, warning: 0, failed: 0, skipped: 0 };
  const options = { load: () => configFrom(flags), migrations: relayMigrations, network };
  for await (const result of runChecks(options)) {
    counts[result.outcome] += 1;
    print(json === true ? [terminalJson({ ...result })] : linesOf(result));
  }
  if (json !== true) {
    const { ok, warning, failed, skipped } = counts;
    print(['', `${ok} ok, ${warning} warning, ${failed} failed, ${skipped} skipped`]);
  }
  if (counts.failed > 0) process.exitCode = 1;
}

/** Characters of the columns of outcome and name. */
const columns = { outcome: 8, name: 19 } as const;

function linesOf({ check, outcome, seen, cure }: CheckResult): string[] {
  const start = `${outcome.padEnd(columns.outcome)} ${check.padEnd(columns.name)} `;
  const lines = [`${start}${oneLine(seen)}`];
  if (cure !== undefined) lines.push(`${' '.repeat(start.length)}-> ${oneLine(cure)}`);
  return lines;
}
