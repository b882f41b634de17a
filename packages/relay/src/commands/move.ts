/** `posthouse move`: arguments and output; storage/move/ does the work. */
import type { Command } from 'commander';
import { relayMigrations, restoredStatements } from '../modules.ts';
import { abandonMove } from '../storage/move/abandon.ts';
import {
  type DatabaseAddress,
  DatabaseAddressError,
  differs,
  type MovedTable,
  type MoveResult,
  moveStorage,
  parseAddress,
} from '../storage/move/move.ts';
import { longCommand } from './long-command.ts';
import { note, print } from './terminal-output.ts';

interface MoveFlags {
  readonly from: string;
  readonly to?: string;
  readonly replace?: boolean;
  readonly abandon?: boolean;
  readonly lost?: string;
}

const help = `
A database is named by
  sqlite:DIR        the data folder with relay.sqlite
  postgres://user:password@host:port/database
                    or postgres: followed by such a URL. If it has no password, PGPASSWORD
                    or the file ~/.pgpass is used; no password is ever printed.

Stop every process of the relay first. Neither database may be in use during the move, and no relay
starts on either until the move is complete. If the move is interrupted, even by a crash, run the
same command again: it continues. At the end both databases are read again and compared, table by
table; only then does the source go out of service and the target into service. The source keeps
its rows, marked as moved.

The relay's keys are not copied: they stay in keys/ of the data folder.

Exit status: 0 moved (or given up, with --abandon), 1 not moved, 2 wrong arguments.

Examples:
  posthouse move --from sqlite:/var/lib/posthouse --to postgres://relay@db.example/relay
  posthouse move --from postgres://relay@db.example/relay --to sqlite:/var/lib/posthouse --replace`;

/** Completes `posthouse move`. */
export function configure(command: Command): void {
  command
    .requiredOption('--from <database>', 'the current database')
    .option('--to <database>', 'the new database, which must be empty')
    .option('--replace', 'empty the target first, if it is the old copy of an earlier move')
    .option('--abandon', 'give up an incomplete move and put the source back into service')
    .option('--lost <database>', 'with --abandon: the target, if it is lost for good')
    .addHelpText('after', help)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(run);
}

/** Ends with 0, 1 or 2. */
async function run(flags: MoveFlags): Promise<void> {
  try {
    process.exitCode = flags.abandon ? await abandon(flags) : await move(flags);
  } catch (error) {
    if (!(error instanceof DatabaseAddressError)) throw error;
    note(error.message);
    process.exitCode = 2;
  }
}

function addresses({ from, to, replace, abandon, lost }: MoveFlags): {
  from: DatabaseAddress;
  to?: DatabaseAddress;
} {
  if (replace && abandon)
    throw new DatabaseAddressError('--abandon replaces nothing: leave --replace out');
  if (lost !== undefined && !abandon)
    throw new DatabaseAddressError('--lost needs --abandon: add it');
  if (lost !== undefined && to !== undefined)
    throw new DatabaseAddressError('give either --to or --lost, not both');
  const source = parseAddress(from);
  if (to === undefined) return { from: source };
  const target = parseAddress(to);
  if (source.name === target.name)
    throw new DatabaseAddressError('--from and --to are the same database: give another --to');
  return { from: source, to: target };
}

async function abandon(flags: MoveFlags): Promise<number> {
  const { from, to } = addresses(flags);
  const lost = flags.lost === undefined ? undefined : parseAddress(flags.lost);
  const target = await abandonMove({
    ...{ from, to, lost },
    ...{ migrations: relayMigrations, restored: restoredStatements },
  });
  if (lost !== undefined) {
    print([
      `given up: ${from.name} is the relay's database again, as of the move`,
      `What was accepted since is missing. If ${target} reappears, no relay may ever run on ${target}.`,
    ]);
    return 0;
  }
  print([
    `given up: ${from.name} is the relay's database, as before`,
    `${target} holds an unfinished copy that no relay starts on: remove it, or empty it`,
  ]);
  return 0;
}

async function move(flags: MoveFlags): Promise<number> {
  const { from, to } = addresses(flags);
  if (to === undefined) throw new DatabaseAddressError('--to is needed: give the new database');
  const outcome = await longCommand({
    stopped: 'run the same command again to continue; nothing is lost',
    work: ({ signal, progress }) =>
      moveStorage({
        ...{ from, to, migrations: relayMigrations, replace: flags.replace, signal },
        progress: ({ step, table, rows, total }) =>
          progress({ step: `${step} ${table}`, done: rows, total }),
      }),
  });
  if (outcome === undefined) return 1;
  print([...table(outcome.tables), ...conclusion(outcome, from, to)]);
  return outcome.state === 'differs' ? 1 : 0;
}

function table(tables: readonly MovedTable[]): string[] {
  if (tables.length === 0) return [];
  const width = Math.max(...tables.map(({ table }) => table.length));
  const line = (name: string, rows: string | number, digest: string) =>
    `${name.padEnd(width)}  ${String(rows).padStart(12)}  ${digest}`;
  return [
    line('table', 'rows', 'SHA-256'),
    ...tables.flatMap((moved) =>
      differs(moved)
        ? [
            line(moved.table, moved.source.rows, `${moved.source.digest}  source, differs from`),
            line(moved.table, moved.target.rows, `${moved.target.digest}  target`),
          ]
        : [line(moved.table, moved.source.rows, moved.source.digest)],
    ),
    '',
  ];
}

function conclusion(
  { state, relayId }: MoveResult,
  from: DatabaseAddress,
  to: DatabaseAddress,
): string[] {
  if (state === 'differs') {
    return [
      `not moved: ${from.name} and ${to.name} differ, and neither lets a relay run`,
      'One of them was changed after its rows were copied. Either give the move up with --abandon and',
      'continue with the source; or remove the target and run the same command with an empty one.',
    ];
  }
  return [
    `${state}: ${from.name} -> ${to.name}`,
    `The relay ${relayId} starts on ${to.name} now, and on no other database.`,
    keysHint(from, to),
  ];
}

function keysHint(from: DatabaseAddress, to: DatabaseAddress): string {
  const needs = "The relay's keys were not copied: it needs";
  if (to.engine === 'sqlite') return `${needs} them in ${to.folder}/keys.`;
  const folder = from.engine === 'sqlite' ? from.folder : 'the data folder it ran with';
  return `${needs} keys/ of ${folder}, and \`data\` set to a folder that has it.`;
}
