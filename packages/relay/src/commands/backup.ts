/** `posthouse backup`: arguments and output; backup/ does the work. */
import { resolve } from 'node:path';
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { backUp } from '../backup/index.ts';
import { systemClock } from '../clock.ts';
import { relayMigrations } from '../modules.ts';
import { longCommand } from './long-command.ts';
import { asksStorage, configAndFlags } from './storage-command.ts';
import { print } from './terminal-output.ts';

interface BackupFlags {
  readonly to: string;
  readonly withKeys?: boolean;
  readonly json?: boolean;
}

const help = `
Copies one moment of the database to a new file, whether the relay runs or not; no call fails or waits
for it. The file has the same form for SQLite and PostgreSQL, a list of its contents with digests, and
mode 0600. It appears under its name when it is complete and was read again; until then there is a
folder FILE.partial.

The relay's keys are not in it without --with-keys: keep a copy of keys/ apart. A thief of the keys
can run as the relay. Attachments (\`blobs.folder\`) are files of their own that never change: copy that folder as it
is, after the backup.

Exit status: 0 made, 1 not made, 2 wrong arguments or configuration.

Examples:
  posthouse backup --to /backup/relay-monday --config relay.json
  posthouse backup --to /backup/relay-all --with-keys --config relay.json`;

/** Completes `posthouse backup`. */
export function configure(command: Command): void {
  asksStorage(command)
    .requiredOption('--to <file>', 'the file to be made')
    .option('--with-keys', "put the relay's keys into the file too")
    .option('--json', 'print progress and result as one JSON object per line')
    .addHelpText('after', help)
    .action((_, of: Command) => run(of));
}

async function run(of: Command): Promise<void> {
  const { config, own } = configAndFlags<BackupFlags>(of);
  const to = resolve(own.to);
  const manifest = await longCommand({
    json: own.json,
    stopped: 'nothing was made; run the same command again',
    work: ({ signal, progress }) =>
      backUp({
        ...{ config, to, signal, progress, migrations: relayMigrations },
        withKeys: own.withKeys ?? false,
        now: systemClock.now(),
      }),
  });
  if (manifest === undefined) return;
  const { relay, tables, keys } = manifest;
  const filled = Object.values(tables).filter((table) => table.rows > 0);
  const rows = filled.reduce((sum, table) => sum + table.rows, 0);
  const hasKeys = Object.keys(keys).length > 0;
  if (own.json) {
    const result = { event: 'backup', file: to, relay_id: relay, rows, with_keys: hasKeys };
    return print([terminalJson({ ...result, created_at: manifest.created_at })]);
  }
  print([
    `backup made: ${to}`,
    `relay ${relay}, ${rows} rows in ${filled.length} tables`,
    hasKeys
      ? 'The keys are in it: keep the file where only you can read it.'
      : `The keys are not in it: keep a copy of keys/ of ${config.data} apart.`,
  ]);
}
