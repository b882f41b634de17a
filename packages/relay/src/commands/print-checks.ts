/** What `posthouse check` and `posthouse doctor` share: output and help; operations/ has the checks. */
import { terminalJson } from '@posthouse/protocol/terminal';
import { relayMigrations } from '../modules.ts';
import {
  type CheckResult,
  type Outcome,
  runChecks,
  type Scope,
} from '../operations/checks/index.ts';
import { configFrom, type Flags } from './config-flags.ts';
import { longCommand } from './long-command.ts';
import { oneLine, print } from './terminal-output.ts';

type Begun = NonNullable<Parameters<typeof runChecks>[0]['begun']>;

/** Flags of both commands. */
export interface CheckFlags extends Flags {
  readonly json?: boolean;
  readonly local?: boolean;
}

/** Start of both help texts: what is printed. */
export const outcomesHelp = `
Each check has an outcome, what was seen and, if something is wrong, what to do:
  ok       as it should be
  warning  works, but needs your attention
  failed   does not work
  skipped  was not checked, and why`;

/** End of both help texts, before the examples. */
export const endingHelp = `
The command works whether the relay runs or not, changes nothing, and says so if the relay does not
run. It needs the configuration that the relay runs with.

Exit status: 0 without a failed check, 1 with one, 2 wrong arguments.`;

/** Runs the checks and prints each result; the exit status is 1 if one failed. */
export async function printChecks({ json, ...flags }: CheckFlags, scope: Scope): Promise<void> {
  const counts: Record<Outcome, number> = { ok: 0, warning: 0, failed: 0, skipped: 0 };
  const options = { load: () => configFrom(flags), migrations: relayMigrations, scope };
  const isWhole = await longCommand({
    ...{ isTerminalOnly: true, stopped: 'nothing was changed; run the command again' },
    work: async ({ signal, progress, clear }) => {
      const begun: Begun = ({ name, ...counted }) =>
        progress({ step: `checking ${name}`, ...counted });
      for await (const result of runChecks({ ...options, begun, signal })) {
        clear();
        counts[result.outcome] += 1;
        print(json === true ? [terminalJson({ ...result })] : linesOf(result));
      }
      return true;
    },
  });
  if (json !== true && isWhole === true) {
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
