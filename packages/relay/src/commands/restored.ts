/** `posthouse restored`: arguments and output; backup/ does the work. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { markPutBack } from '../backup/index.ts';
import { systemClock } from '../clock.ts';
import { relayMigrations, restoredStatements } from '../modules.ts';
import { longCommand } from './long-command.ts';
import { asksStorage, configAndFlags } from './storage-command.ts';
import { instant, note, print } from './terminal-output.ts';

const help = `
For a database that was put back by other means than \`posthouse restore\`: a snapshot of the file system,
point-in-time recovery of PostgreSQL, failover to an asynchronous standby, a copied folder. Run it once,
after that and before the relay starts. Without it, sequences are given twice, and messages are lost.

It continues all sequences far above the last ones, ends all sessions, and has devices and routes
confirmed again before they are used. It refuses while a relay runs. To run it twice does no harm. A database
of an older version is upgraded, after a copy as at the start of a relay.

Exit status: 0 done, 1 failed, 2 wrong arguments or configuration.

Example:
  posthouse restored --config relay.json`;

/** Completes `posthouse restored`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--json', 'print progress and result as one JSON object per line')
    .addHelpText('after', help)
    .action((_, of: Command) => run(of));
}

/** Prints what a start would log about an upgrade. */
function logged(facts: unknown, text?: unknown): void {
  const { path } = facts as { readonly path?: string };
  note([text ?? facts, ...(path === undefined ? [] : [path])].join(': '));
}

async function run(of: Command): Promise<void> {
  const { config, own } = configAndFlags<{ readonly json?: boolean }>(of);
  const restoredAt = await longCommand({
    json: own.json,
    stopped: 'the database is not marked: run the same command again before the relay starts',
    work: (work) =>
      markPutBack(config, {
        ...{ ...work, migrations: relayMigrations, statements: restoredStatements },
        ...{ now: systemClock.now(), log: { info: logged, warn: logged } },
      }),
  });
  if (restoredAt === undefined) return;
  print([
    own.json === true
      ? terminalJson({ event: 'restored', restored_at: restoredAt })
      : `the database is marked as restored at ${instant(restoredAt)}: start the relay`,
  ]);
}
