/** `posthouse compact`. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { compactSqlite } from '../storage/sqlite/compact.ts';
import { longCommand } from './long-command.ts';
import { asksStorage, configAndFlags } from './storage-command.ts';
import { print } from './terminal-output.ts';

const help = `
Writes the embedded database anew, without the room that it does not use. A relay gives such room back
to the disk by itself, a little at a time; this does it at once, and is needed once for a database of
a version before this command. Stop the relay first. It needs twice as much free disk as the database uses.
Ctrl+C, or a kill, leaves the database as it was.

PostgreSQL does this itself (autovacuum); VACUUM FULL is the same for a database there.

Exit status: 0 done, 1 failed or stopped, 2 wrong arguments or configuration.

Examples:
  posthouse compact --config relay.json
  posthouse compact --json --config relay.json`;

/** Completes `posthouse compact`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--json', 'print progress and result as one JSON object per line')
    .addHelpText('after', help)
    .action((_, of: Command) => compact(of));
}

async function compact(of: Command): Promise<void> {
  const { config, own } = configAndFlags<{ readonly json?: boolean }>(of);
  if (config.storage.engine !== 'sqlite') {
    throw new Error('storage.engine is postgres: the server gives room back itself (autovacuum)');
  }
  const result = await longCommand({
    ...{ json: own.json, stopped: 'the database is as it was; run the same command again' },
    work: (parts) => compactSqlite(config.data, parts),
  });
  if (result === undefined) return;
  const { before, after } = result;
  if (own.json === true) print([terminalJson({ event: 'compacted', before, after })]);
  else print([`compacted: ${MiB(before)} before, ${MiB(after)} now`]);
}

const MiB = (bytes: number) => `${(bytes / 1_048_576).toFixed(1)} MiB`;
