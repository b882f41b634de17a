/** `posthouse reports`: what an operator types and sees; the rows are channels/' own. */
import {
  AccountId,
  ChannelId,
  checkSchema,
  TargetSequence,
  type TSchema,
  Type,
  terminalColumns,
  terminalJson,
  terminalLine,
  terminalText,
} from '@posthouse/protocol';
import { Command, InvalidArgumentError } from 'commander';
import {
  dismissReports,
  type ListedReport,
  listReports,
  type ReportedPost,
  showReported,
} from './channels/index.ts';
import { configOf, type Flags, withConfig } from './command-line.ts';
import type { RelayConfig } from './config/index.ts';
import { relayMigrations } from './schema.ts';
import { openBeside } from './storage/open.ts';
import type { Storage } from './storage/types.ts';

const help = `
Whoever reads a channel of this relay can report a post to you. A report does nothing by itself, and
nobody else ever sees it. It is kept for \`limits.channelReportPeriod\`, also when its post is gone.

The relay may run meanwhile, or not: the command opens its database beside it.

Exit status: 0 done, 1 not done, or nothing there, 2 wrong arguments or configuration.

Examples:
  posthouse reports --config relay.json
  posthouse reports show chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json
  posthouse reports dismiss chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json`;

/** Reports that are shown where nobody says how many. */
const usualLimit = 50;
const mostShown = 100_000;

export function reportsCommand(): Command {
  return (
    command('reports', "list what accounts reported of channels' posts, the newest last")
      // Flags behind `show` are those of `show`.
      .enablePositionalOptions()
      .option('--channel <id>', 'only of this channel', channelOf)
      .option('--limit <number>', limitMeaning, limitOf)
      .option('--json', 'one JSON object a line')
      .addHelpText('after', help)
      .action((_, of) => list(of))
      .addCommand(
        aboutPost('show', 'show a post as it is now, and the reports about it')
          .option('--limit <number>', limitMeaning, limitOf)
          .option('--json', 'one JSON object')
          .action((channel, sequence, _, of) => show({ channelId: channel, sequence }, of)),
      )
      .addCommand(
        aboutPost('dismiss', 'remove the reports about a post')
          .option('--account <id>', 'only those of this account', accountOf)
          .action((channel, sequence, _, of) => dismiss({ channelId: channel, sequence }, of)),
      )
  );
}

const limitMeaning = `the newest so many, ${usualLimit} where it is left out`;

function command(name: string, description: string): Command {
  return withConfig(new Command(name).description(description)).exitOverride((error) =>
    process.exit(error.exitCode === 0 ? 0 : 2),
  );
}

/** A command about one post. */
function aboutPost(name: string, description: string): Command {
  return command(name, description)
    .argument('<channel>', 'its ID, chan_…', channelOf)
    .argument('<sequence>', "the post's position in it", sequenceOf);
}

const channelOf = (text: string) => argument(ChannelId, text, 'chan_ and 22 characters');
const accountOf = (text: string) => argument(AccountId, text, 'neo:<magic>:<address>');
const sequenceOf = (text: string) => integer(TargetSequence, text, 'a number from 1');
const limitOf = (text: string) =>
  integer(Type.Integer({ minimum: 1, maximum: mostShown }), text, `1 to ${mostShown}`);

function integer(schema: TSchema, text: string, expected: string): number {
  return argument<number>(schema, /^[0-9]+$/.test(text) ? Number(text) : text, expected);
}

/** What commander is given for a text, where it fits. */
function argument<T>(schema: TSchema, value: T | string, expected: string): T {
  try {
    checkSchema(schema, value);
  } catch {
    throw new InvalidArgumentError(`Expected ${expected}.`);
  }
  return value as T;
}

/** A post, as an operator names it. */
interface Named {
  readonly channelId: string;
  readonly sequence: number;
}

interface OwnFlags {
  readonly channel?: string;
  readonly limit?: number;
  readonly json?: boolean;
  readonly account?: string;
}

/** Flags of a command, wherever they stood. */
function flagsOf(of: Command): { readonly config: RelayConfig; readonly own: OwnFlags } {
  const flags = of.optsWithGlobals();
  return { config: configOf(flags as Flags, 'storage').config, own: flags as OwnFlags };
}

async function using<T>(config: RelayConfig, work: (storage: Storage) => Promise<T>): Promise<T> {
  await using storage = await openBeside(config, relayMigrations);
  return await work(storage);
}

async function list(of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { channel: channelId, limit = usualLimit, json = false } = own;
  // One more than asked for tells whether there is more.
  const found = await using(config, (storage) => listReports(storage, { channelId }, limit + 1));
  const reports = found.slice(-limit);
  if (json) print(reports.map((report) => terminalJson(wireOf(report))));
  else if (reports.length > 0) print(table(reports));
  else note(config.host.channels ? 'no reports' : 'no reports: host.channels is off');
  if (found.length > limit) note(`older ones are left out, see --limit`);
}

async function show(named: Named, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { limit = usualLimit, json = false } = own;
  const found = await using(config, (storage) => showReported(storage, named, limit + 1));
  const { post } = found;
  const reports = found.reports.slice(-limit);
  if (post.fate === 'gone' && reports.length === 0) {
    throw new Error(`${place(named)}: there is no such post, and no report about one`);
  }
  if (json) print([terminalJson({ ...wireOfPost(named, post), reports: reports.map(wireOf) })]);
  else print([...postLines(named, post), '', ...reportLines(reports)]);
  if (found.reports.length > limit) note('older reports are left out, see --limit');
}

async function dismiss(named: Named, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { account } = own;
  const count = await using(config, (storage) => dismissReports(storage, { ...named, account }));
  const by = account === undefined ? '' : ` by ${account}`;
  if (count === 0) throw new Error(`${place(named)}: there are no reports${by}`);
  print([`${count === 1 ? '1 report' : `${count} reports`} dismissed`]);
}

function place({ channelId, sequence }: Named): string {
  return `post ${sequence} of ${channelId}`;
}

function print(lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line}\n`);
}

/** A remark that is not part of the result. */
function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Characters of a reason in the table. */
const shortReason = 60;

function table(reports: readonly ListedReport[]): string[] {
  const rows = reports.map((report) => [
    instant(report.reportedAt),
    report.channelId,
    String(report.sequence),
    report.post,
    report.account,
    shortened(report.reason),
  ]);
  return terminalColumns([['reported', 'channel', 'post', 'is', 'by', 'reason'], ...rows]);
}

/** Text of somebody else as one line. */
function oneLine(text: string): string {
  return terminalLine(text.replaceAll('\n', ' '));
}

/** As {@link oneLine}, no longer than the table has room for. */
function shortened(text: string): string {
  const characters = [...oneLine(text)];
  if (characters.length <= shortReason) return characters.join('');
  return `${characters.slice(0, shortReason - 1).join('')}…`;
}

/** As logs have it. */
function instant(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace('.000', '');
}

const fates = {
  readable: 'readable',
  deleted: 'deleted by the owner or a moderator',
  gone: 'not there: its retention is over, or there never was one',
} as const;

function postLines(named: Named, post: ReportedPost): string[] {
  const { channelName, account, acceptedAt, state } = post;
  const { body, attachments = [] } = state ?? {};
  const rows = [
    ['channel', `${named.channelId} ${oneLine(channelName ?? '')}`.trimEnd()],
    ['post', `${named.sequence}, ${fates[post.fate]}`],
    ...(account === undefined ? [] : [['by', account]]),
    ...(acceptedAt === undefined ? [] : [['at', instant(acceptedAt)]]),
    ...attachments.map(({ uri, content_type, size }) => [
      'attachment',
      oneLine(`${uri} (${content_type}, ${size} bytes)`),
    ]),
    ...(body === undefined ? [] : [['text', oneLine(body.content_type)]]),
  ];
  const lines = terminalColumns(rows);
  return body === undefined ? lines : [...lines, `    ${terminalText(body.text)}`];
}

function reportLines(reports: readonly ListedReport[]): string[] {
  if (reports.length === 0) return ['no reports'];
  return reports.flatMap(({ reportedAt, account, deviceId, reason }) => [
    `reported ${instant(reportedAt)} by ${account} (${deviceId})`,
    `    ${terminalText(reason)}`,
  ]);
}

function wireOf(report: ListedReport): object {
  return {
    channel_id: report.channelId,
    sequence: report.sequence,
    post: report.post,
    account: report.account,
    device_id: report.deviceId,
    reported_at: report.reportedAt,
    reason: report.reason,
  };
}

function wireOfPost({ channelId, sequence }: Named, post: ReportedPost): object {
  const { channelName: channel_name, account, acceptedAt: accepted_at, state } = post;
  const facts = { channel_name, account, accepted_at, state };
  return { channel_id: channelId, sequence, post: post.fate, ...facts };
}
