/** `posthouse restore`: arguments and output; backup/ does the work. */
import { resolve } from 'node:path';
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { restore } from '../backup/index.ts';
import { systemClock } from '../clock.ts';
import { relayMigrations, restoredStatements } from '../modules.ts';
import { longCommand } from './long-command.ts';
import { instant, print } from './terminal-output.ts';

interface RestoreFlags {
  readonly from: string;
  readonly to: string;
  readonly network?: string;
  readonly service?: string;
  readonly json?: boolean;
}

const help = `
Makes a data folder from a backup of \`posthouse backup\`. The folder must be empty or absent. Nothing is
written before the whole backup was read and compared with its digests. No relay starts on the folder
before the end; if the command is interrupted, even by a crash, run it again.

What the relay accepted after the backup is lost. So that nothing is lost after the restore, all
sequences continue far above the last ones, all sessions end, and devices and routes are confirmed again
before they are used; clients notice it and publish again what the relay lost. A device that was removed
after the backup can sign in again until another device of its account connects.

Restores to SQLite; \`posthouse move\` takes it to PostgreSQL. To put a database back by other means (a
snapshot of the file system, point-in-time recovery, failover to a standby), run \`posthouse restored\`
afterwards. The relay of before must never run again: there would be two with one identity.

Exit status: 0 restored, 1 not restored, 2 wrong arguments.

Examples:
  posthouse restore --from /backup/relay-monday --to /var/lib/posthouse
  posthouse restore --from /backup/relay-monday --to /var/lib/posthouse --network neo:1:0x…`;

/** Completes `posthouse restore`. */
export function configure(command: Command): void {
  command
    .requiredOption('--from <file>', 'the backup')
    .requiredOption('--to <folder>', 'the data folder to be made')
    .option('--network <context>', 'refuse a backup of another network')
    .option('--service <word>', 'refuse a backup of another service word')
    .option('--json', 'print progress and result as one JSON object per line')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(run);
}

async function run({ from, to, network, service, json }: RestoreFlags): Promise<void> {
  const folder = resolve(to);
  const result = await longCommand({
    json,
    stopped: `no relay starts on ${folder}; run the same command again, or remove the folder`,
    work: ({ signal, progress }) =>
      restore({
        ...{ from: resolve(from), to: folder, signal, progress, expected: { network, service } },
        ...{ migrations: relayMigrations, statements: restoredStatements },
        now: systemClock.now(),
      }),
  });
  if (result === undefined) return;
  const { relay, createdAt, restoredAt, hasKeys } = result;
  if (json === true) {
    const event = { event: 'restored', folder, relay_id: relay, created_at: createdAt };
    return print([terminalJson({ ...event, restored_at: restoredAt, with_keys: hasKeys })]);
  }
  print([
    `restored: ${folder}, the relay ${relay} as of ${instant(createdAt)}`,
    hasKeys
      ? `The keys are in ${folder}/keys.`
      : `The keys were not in the backup: put your copy into ${folder}/keys before you start the relay.`,
    'Never start the relay of before again.',
  ]);
}
