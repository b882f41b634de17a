/** `posthouse reports`: what an operator types and sees; the rows are channels/' own. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { dismissReports, listReports, readReportedPost } from '../channels/index.ts';
import {
  aboutPost,
  accountOf,
  channelOf,
  command,
  flagsOf,
  limitMeaning,
  limitOf,
  type Named,
  using,
  usualLimit,
} from './reports-arguments.ts';
import {
  note,
  place,
  postLines,
  print,
  reportLines,
  reportTable,
  wireOf,
  wireOfPost,
} from './reports-view.ts';
import { restoreCommand, withheldCommand, withholdCommand } from './withhold.ts';

const help = `
Whoever reads a channel of this relay can report a post to you. A report does nothing by itself, and
nobody else ever sees it. It is kept for \`limits.channelReportPeriod\`, also when its post is gone.

The relay may run meanwhile, or not: the command opens its database beside it.

Exit status: 0 done, 1 not done, or nothing there, 2 wrong arguments or configuration.

Examples:
  posthouse reports --config relay.json
  posthouse reports show chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json
  posthouse reports dismiss chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json`;

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
      .addCommand(withholdCommand())
      .addCommand(restoreCommand())
      .addCommand(withheldCommand())
  );
}

async function list(of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { channel: channelId, limit = usualLimit, json = false } = own;
  // One more than asked for tells whether there is more.
  const found = await using(config, (storage) => listReports(storage, { channelId }, limit + 1));
  const reports = found.slice(-limit);
  if (json) print(reports.map((report) => terminalJson(wireOf(report))));
  else if (reports.length > 0) print(reportTable(reports));
  else note(config.host.channels ? 'no reports' : 'no reports: host.channels is off');
  if (found.length > limit) note(`older ones are left out, see --limit`);
}

async function show(named: Named, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { limit = usualLimit, json = false } = own;
  const found = await using(config, (storage) => readReportedPost(storage, named, limit + 1));
  const { post } = found;
  const reports = found.reports.slice(-limit);
  if (post.status === 'gone' && reports.length === 0) {
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
