/** `list` and `show` of accounts, groups and channels: flags and output. */
import type { TSchema } from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { terminalColumns, terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { limitOf } from './reports-arguments.ts';
import { argument, subcommand } from './storage-command.ts';
import { instant, note, oneLine, print, shortened } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

/** What a command says of one kind of owner. */
export interface OwnerCommand {
  /** `account`: also the verbs' noun. */
  readonly kind: string;
  /** The member with the ID. */
  readonly member: string;
  readonly id: TSchema;
  /** What an ID looks like. */
  readonly form: string;
  /** Members of a line, in addition to ID, records, bytes and times. */
  readonly columns: readonly string[];
}

/** Lines of a list. */
const defaultLimit = 100;

interface ListFlags {
  readonly limit?: number;
  readonly json?: boolean;
}

/** Adds `list` and `show` to a command. */
export function addOwnerCommands(command: Command, of: OwnerCommand): Command {
  const { kind } = of;
  return command
    .addCommand(
      subcommand('list', `list the ${kind}s, with what each has stored`)
        .option('--limit <number>', `how many to show; default ${defaultLimit}`, limitOf)
        .option('--json', 'print one JSON object per line')
        .action((_, own) => list(of, own)),
    )
    .addCommand(
      subcommand('show', `show one ${kind}, with what it has stored`)
        .argument('<id>', `ID of the ${kind}`, (text) => argument<string>(of.id, text, of.form))
        .option('--json', 'print one JSON object')
        .action((id, _, own) => show(of, id, own)),
    );
}

async function list({ kind, member, columns }: OwnerCommand, of: Command): Promise<void> {
  await withVerbs<ListFlags, void>(of, async (verbs, { limit = defaultLimit, json }) => {
    const found = await verbs.all<JsonObject>(kind, 'list', {}, limit + 1);
    const items = found.slice(0, limit);
    if (json) print(items.map((item) => terminalJson(item)));
    else if (items.length === 0) note(`no ${kind} is here`);
    else {
      const names = [member, ...columns, 'records', 'bytes', 'last_day_bytes', 'newest'];
      print(terminalColumns([names.map(heading), ...items.map((item) => cells(item, names))]));
    }
    if (found.length > limit) note('more are not shown: give a higher --limit');
  });
}

async function show({ kind, member }: OwnerCommand, id: string, of: Command): Promise<void> {
  await withVerbs<ListFlags, void>(of, async (verbs, { json }) => {
    const found = await verbs.call(kind, 'show', { [member]: id });
    if (json) {
      print([terminalJson(found)]);
      return;
    }
    const { devices, ...facts } = found;
    const rows = Object.keys(facts).map((name) => [heading(name), cell(name, facts[name])]);
    print(terminalColumns(rows));
    for (const device of (devices ?? []) as JsonObject[]) {
      print([`device  ${device.device_id}, until ${cell('expires_at', device.expires_at)}`]);
    }
  });
}

const heading = (name: string) => name.replaceAll('_', ' ');

function cells(item: JsonObject, names: readonly string[]): string[] {
  return names.map((name) => {
    const text = cell(name, item[name]);
    return name === 'name' ? shortened(text) : text;
  });
}

/** Formats a member: a time if that is what its name says. */
function cell(name: string, value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '-';
  if (typeof value !== 'number') return oneLine(String(value));
  const isTime = /_at$|^(?:newest|oldest)$/.test(name);
  return isTime ? instant(value) : value.toLocaleString('en-US');
}
