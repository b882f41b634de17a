/** `posthouse verify`: arguments and output; backup/ does the work. */
import { resolve } from 'node:path';
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { verifyBackup } from '../backup/index.ts';
import { relayMigrations } from '../modules.ts';
import { longCommand } from './long-command.ts';
import { instant, oneLine, print } from './terminal-output.ts';

interface VerifyFlags {
  readonly from: string;
  readonly json?: boolean;
}

const help = `
Reads all of a backup: digests, signatures, the chains of groups, the descriptors of channels, and what
rows refer to. It changes nothing, and needs neither configuration nor keys. Each message costs about
a millisecond.

Exit status: 0 all is as it must be, 1 something is not, 2 wrong arguments.

Example:
  posthouse verify --from /backup/relay-monday`;

/** Completes `posthouse verify`. */
export function configure(command: Command): void {
  command
    .requiredOption('--from <file>', 'the backup')
    .option('--json', 'print progress, problems and result as one JSON object per line')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(run);
}

async function run({ from, json }: VerifyFlags): Promise<void> {
  const file = resolve(from);
  const result = await longCommand({
    json,
    stopped: 'nothing was changed; run the same command again, it begins anew',
    work: (parts) => verifyBackup(file, { ...parts, migrations: relayMigrations }),
  });
  if (result === undefined) return;
  const { manifest, checked, problems, problemCount } = result;
  if (problemCount > 0) process.exitCode = 1;
  const { relay, created_at: createdAt } = manifest;
  if (json === true) {
    for (const problem of problems) print([terminalJson({ event: 'problem', ...problem })]);
    const event = { event: 'verified', file, relay_id: relay, created_at: createdAt };
    return print([terminalJson({ ...event, checked, problems: problemCount })]);
  }
  const counts = Object.entries(checked).filter(([, count]) => count > 0);
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  const rows = Object.values(manifest.tables).reduce((sum, table) => sum + table.rows, 0);
  print([
    `${file}: the relay ${relay} as of ${instant(createdAt)}`,
    ...counts.map(([kind, count]) => `${String(count).padStart(10)} ${kind}`),
    `read ${rows} rows, checked ${total} objects`,
    ...problems.map(({ row, why }) => oneLine(`wrong: ${row}: ${why}`)),
    problemCount === 0 ? 'all is as it must be' : `${problemCount} are wrong: use another backup`,
  ]);
}
