/** `posthouse reports`: arguments and output; channels/ reads and changes the rows. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { dismissReports, listReports, readReportedPost } from '../channels/index.ts';
import {
  aboutPost,
  accountOf,
  channelOf,
  defaultLimit,
  flagsOf,
  limitMeaning,
  limitOf,
  type PostAddress,
} from './reports-arguments.ts';
import {
  postLines,
  postName,
  reportLines,
  reportTable,
  wireOf,
  wireOfPost,
} from './reports-view.ts';
import { asksStorage, withStorage } from './storage-command.ts';
import { note, print } from './terminal-output.ts';
import { restoreCommand, withheldCommand, withholdCommand } from './withhold.ts';

const help = `
Every reader of a channel of this relay can report a post to you. A report has no effect by itself
and is shown to no one else. It is kept for \`limits.channelReportPeriod\`, even if its post is gone.

The command works whether the relay runs or not.

Exit status: 0 done, 1 failed or not found, 2 wrong arguments or configuration.

Examples:
  posthouse reports --config relay.json
  posthouse reports show chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json
  posthouse reports dismiss chan_0NM6hMaxkR3u59ygBrOYew 17 --config relay.json`;

/** Completes `posthouse reports`. */
export function configure(command: Command): void {
  asksStorage(command)
    // Flags after `show` belong to `show`.
    .enablePositionalOptions()
    .option('--channel <id>', 'only reports of this channel', channelOf)
    .option('--limit <number>', limitMeaning, limitOf)
    .option('--json', 'print one JSON object per line')
    .addHelpText('after', help)
    .action((_, of) => list(of))
    .addCommand(
      aboutPost('show', 'show the current state of a post, and the reports about it')
        .option('--limit <number>', limitMeaning, limitOf)
        .option('--json', 'print one JSON object')
        .action((channel, sequence, _, of) => show({ channelId: channel, sequence }, of)),
    )
    .addCommand(
      aboutPost('dismiss', 'remove the reports about a post')
        .option('--account <id>', 'only the reports of this account', accountOf)
        .action((channel, sequence, _, of) => dismiss({ channelId: channel, sequence }, of)),
    )
    .addCommand(withholdCommand())
    .addCommand(restoreCommand())
    .addCommand(withheldCommand());
}

async function list(of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { channel: channelId, limit = defaultLimit, json = false } = own;
  // One more than the limit shows whether there are more.
  const found = await withStorage(config, (storage) =>
    listReports(storage, { channelId }, limit + 1),
  );
  const reports = found.slice(-limit);
  if (json) print(reports.map((report) => terminalJson(wireOf(report))));
  else if (reports.length > 0) print(reportTable(reports));
  else note(config.host.channels ? 'no reports' : 'no reports: host.channels is off');
  if (found.length > limit) note('older reports are not shown: give a higher --limit');
}

async function show(address: PostAddress, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { limit = defaultLimit, json = false } = own;
  const found = await withStorage(config, (storage) =>
    readReportedPost(storage, address, limit + 1),
  );
  const { post } = found;
  const reports = found.reports.slice(-limit);
  if (post.status === 'gone' && reports.length === 0) {
    throw new Error(
      `${postName(address)}: no such post and no report about it: check channel and sequence`,
    );
  }
  if (json) print([terminalJson({ ...wireOfPost(address, post), reports: reports.map(wireOf) })]);
  else print([...postLines(address, post), '', ...reportLines(reports)]);
  if (found.reports.length > limit) note('older reports are not shown: give a higher --limit');
}

async function dismiss(address: PostAddress, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { account } = own;
  const count = await withStorage(config, (storage) =>
    dismissReports(storage, { ...address, account }),
  );
  const by = account === undefined ? '' : ` by ${account}`;
  if (count === 0) throw new Error(`${postName(address)}: no reports${by} to dismiss`);
  print([`${count === 1 ? '1 report' : `${count} reports`} dismissed`]);
}
