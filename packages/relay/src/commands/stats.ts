/** `posthouse stats`: what the relay holds. */
import { Type } from '@posthouse/protocol';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { mostTop } from '../admin/index.ts';
import { longCommand } from './long-command.ts';
import { argument, asksStorage } from './storage-command.ts';
import { instant, print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

const help = `
Accounts are those at home here, groups and channels those that are not closed. Bytes of a module are
those of the texts that it has stored; the database takes more, for indexes. An envelope in the
timelines of two accounts counts once for the messages and twice in the list of accounts. What the
last day brought counts as far as it is still stored.

The database is read in short steps: with millions of rows it takes minutes, and the relay goes on
meanwhile. Progress is shown on standard error. The relay answers again what it read in the last ten seconds.

Examples:
  posthouse stats --config relay.json
  posthouse stats --top 5 --json --config relay.json`;

interface Flags {
  readonly top: number;
  readonly json?: boolean;
}

/** One of the largest accounts, groups or channels. */
interface Largest {
  readonly id: string;
  readonly records: number;
  readonly bytes: number;
}

type Numbers<Names extends string> = Readonly<Record<Names, number>>;

interface Stats extends Numbers<'taken_at' | 'accounts' | 'groups' | 'channels'> {
  readonly bytes: Numbers<
    | ('accounts' | 'messages' | 'groups' | 'channels' | 'attachments')
    | ('database' | 'database_unused')
  >;
  readonly last_day: Numbers<'timelines' | 'groups' | 'channels'>;
  readonly oldest_deadline: number | null;
  readonly queue: { readonly messages: number; readonly oldest: number | null };
  readonly restored: Numbers<'accounts_unconfirmed' | 'groups_waiting' | 'groups_incomplete'> & {
    readonly restored_at: number | null;
  };
  readonly top: Readonly<Record<'accounts' | 'groups' | 'channels', readonly Largest[]>>;
}

/** Completes `posthouse stats`. */
export function configure(command: Command): void {
  asksStorage(command)
    .option('--top <number>', `how many of the largest to show, up to ${mostTop}`, topOf, 20)
    .option('--json', 'print one JSON object')
    .addHelpText('after', help)
    .action((_, of) => stats(of));
}

const topOf = (text: string) =>
  argument<number>(
    Type.Integer({ minimum: 0, maximum: mostTop }),
    /^[0-9]+$/.test(text) ? Number(text) : text,
    `0 to ${mostTop}`,
  );

async function stats(of: Command): Promise<void> {
  const printed = await longCommand({
    stopped: 'nothing was changed; run the same command again',
    work: (parts) =>
      withVerbs<Flags, readonly string[]>(
        of,
        async (verbs, { top, json }) => {
          const found = await verbs.call('relay', 'stats', { top });
          return json ? [terminalJson(found)] : lines(found as unknown as Stats);
        },
        parts,
      ),
  });
  if (printed !== undefined) print(printed);
}

function lines({ bytes, last_day, queue, restored, top, ...found }: Stats): string[] {
  const number = (value: number) => value.toLocaleString('en-US');
  const time = (value: number | null) => (value === null ? '-' : instant(value));
  const grown = last_day.timelines + last_day.groups + last_day.channels;
  return [
    ...terminalColumns([
      ['at', instant(found.taken_at)],
      ['accounts', number(found.accounts)],
      ['groups', number(found.groups)],
      ['channels', number(found.channels)],
      ...Object.entries(bytes).map(([name, value]) => [
        `bytes of ${name.replaceAll('_', ', ')}`,
        number(value),
      ]),
      ['bytes of the last day', number(grown)],
      ['oldest deadline', time(found.oldest_deadline)],
      ['waiting for relays', `${number(queue.messages)}, oldest ${time(queue.oldest)}`],
      ...(restored.restored_at === null
        ? []
        : [
            ['restored', time(restored.restored_at)],
            ['accounts not confirmed since', number(restored.accounts_unconfirmed)],
            ['groups that wait for their owner', number(restored.groups_waiting)],
            ['groups that may lack events', number(restored.groups_incomplete)],
          ]),
    ]),
    ...Object.entries(top).flatMap(([kind, largest]) => table(kind, largest)),
  ];
}

function table(kind: string, largest: readonly Largest[]): string[] {
  if (largest.length === 0) return [];
  const rows = largest.map(({ id, records, bytes }) => [
    ...[id, records.toLocaleString('en-US'), bytes.toLocaleString('en-US')],
  ]);
  return ['', ...terminalColumns([[`largest ${kind}`, 'records', 'bytes'], ...rows])];
}
