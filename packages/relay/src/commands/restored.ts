/** `posthouse restored`: arguments and output; backup/ does the work. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { markPutBack } from '../backup/index.ts';
import { systemClock } from '../clock.ts';
import { relayMigrations, restoredStatements } from '../modules.ts';
import { asksStorage, configAndFlags } from './storage-command.ts';
import { instant, print } from './terminal-output.ts';

const help = `
For a database that was put back by other means than \`posthouse restore\`: a snapshot of the file system,
point-in-time recovery of PostgreSQL, failover to an asynchronous standby, a copied folder. Run it once,
after that and before the relay starts. Without it, sequences are given twice, and messages are lost.

It continues all sequences far above the last ones, ends all sessions, and has devices and routes
confirmed again before they are used. It refuses while a relay runs. To run it twice does no harm.

Exit status: 0 done, 1 failed, 2 wrong arguments or configuration.

Example:
  posthouse restored --config relay.json`;

/** Completes `posthouse restored`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--json', 'print the result as JSON')
    .addHelpText('after', help)
    .action((_, of: Command) => run(of));
}

async function run(of: Command): Promise<void> {
  const { config, own } = configAndFlags<{ readonly json?: boolean }>(of);
  const restoredAt = await markPutBack(config, {
    ...{ migrations: relayMigrations, statements: restoredStatements },
    now: systemClock.now(),
  });
  print([
    own.json === true
      ? terminalJson({ event: 'restored', restored_at: restoredAt })
      : `the database is marked as restored at ${instant(restoredAt)}: start the relay`,
  ]);
}
