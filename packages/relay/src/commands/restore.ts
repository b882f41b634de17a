/** `posthouse restore`: arguments and output; backup/ does the work. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { BackupError, type RestoreOptions, restore } from '../backup/index.ts';
import { systemClock } from '../clock.ts';
import { keyFolder } from '../keys/keys.ts';
import { relayMigrations, restoredStatements } from '../modules.ts';
import { configFrom } from './config-flags.ts';
import { longCommand } from './long-command.ts';
import { instant, note, print } from './terminal-output.ts';

interface RestoreFlags {
  readonly from: string;
  readonly to?: string;
  readonly config?: string;
  readonly replace?: boolean;
  readonly network?: string;
  readonly service?: string;
  readonly json?: boolean;
}

const help = `
Makes a relay's database from a backup of \`posthouse backup\`: with --to in a folder that is empty or
absent, with --config in the data folder of that configuration, where keys and other files stay. With
--replace a database that is there is put aside, into the folder \`replaced\` next to it. The relay must not
run. The backup is copied first; nothing else is changed before all of the copy was read and compared
with its digests. No relay starts on the folder before the end; if the command is interrupted, even by a
crash, run it again. Keys are never replaced.

What the relay accepted after the backup is lost. So that nothing is lost after the restore, all
sequences continue far above the last ones, all sessions end, and devices and routes are confirmed again
before they are used; clients notice it and publish again what the relay lost. A device that was removed
after the backup can sign in again until another device of its account connects.

Restores to SQLite; \`posthouse move\` takes that to PostgreSQL. To put a database back by other means (a
snapshot of the file system, point-in-time recovery, failover to a standby), run \`posthouse restored\`
afterwards. The relay of before must never run again: there would be two with one identity.

Exit status: 0 restored, 1 not restored, 2 wrong arguments.

Examples:
  posthouse restore --from /backup/relay-monday --config relay.json --replace
  posthouse restore --from /backup/relay-monday --to /var/lib/posthouse
  posthouse restore --from /backup/relay-monday --to /var/lib/posthouse --network neo:1:0x…`;

/** Completes `posthouse restore`. */
export function configure(command: Command): void {
  command
    .requiredOption('--from <file>', 'the backup')
    .option('--to <folder>', 'the data folder to be made')
    .option('--config <file>', 'configuration file, JSON: restore to its data folder')
    .option('--replace', 'with --config: put the database aside that is there')
    .option('--network <context>', 'refuse a backup of another network')
    .option('--service <word>', 'refuse a backup of another service word')
    .option('--json', 'print progress and result as one JSON object per line')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(run);
}

/** What to restore to, and what must be true of the backup. */
function targetOf(flags: RestoreFlags): Pick<RestoreOptions, 'to' | 'kind' | 'expected'> {
  const { to, config: file, network, service, replace = false } = flags;
  if (to !== undefined) {
    if (file !== undefined || replace)
      wrongArguments('give either --to or --config, and --replace with --config only');
    return { to: resolve(to), kind: 'new', expected: { network, service } };
  }
  if (file === undefined) return wrongArguments('give --to with an empty folder, or --config');
  const { config } = configFrom({ config: file, network, service }, 'storage');
  if (config.storage.engine !== 'sqlite') {
    throw new BackupError(
      `${file} names PostgreSQL: restore to a new folder with --to, then run \`posthouse move\` from that ` +
        'to an empty database. If the tools of PostgreSQL have put the database back, run `posthouse restored`',
    );
  }
  const expected = { network: config.network, service: config.service };
  return { to: resolve(config.data), kind: replace ? 'replaced' : 'data', expected };
}

function wrongArguments(message: string): never {
  note(message);
  process.exit(2);
}

async function run(flags: RestoreFlags): Promise<void> {
  const { from, json } = flags;
  const target = targetOf(flags);
  const { to: folder } = target;
  const result = await longCommand({
    json,
    stopped:
      target.kind === 'new'
        ? `no relay starts on ${folder}; run the same command again, or remove the folder`
        : `run the same command again, unless ${folder} has no file \`restoring\`: then nothing was changed`,
    work: ({ signal, progress }) =>
      restore({
        ...{ ...target, from: resolve(from), signal, progress },
        ...{ migrations: relayMigrations, statements: restoredStatements },
        now: systemClock.now(),
      }),
  });
  if (result === undefined) return;
  const { relay, createdAt, restoredAt, rows, hasKeys } = result;
  if (json === true) {
    const event = { event: 'restored', folder, relay_id: relay, created_at: createdAt };
    return print([terminalJson({ ...event, restored_at: restoredAt, with_keys: hasKeys })]);
  }
  print([
    `restored: ${folder}, the relay ${relay} as of ${instant(createdAt)}, ${rows} rows`,
    hasKeys || existsSync(keyFolder(folder))
      ? `The keys are in ${folder}/keys.`
      : `The keys were not in the backup: put your copy into ${folder}/keys before you start the relay.`,
    ...(target.kind === 'replaced'
      ? [`The database of before is in ${folder}/replaced: remove it when all is well.`]
      : []),
    'Never start the relay of before again.',
  ]);
}
