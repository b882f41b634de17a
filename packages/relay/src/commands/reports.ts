/** `posthouse reports`: arguments and output; channels/ reads and changes the rows. */
import { terminalJson } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import {
  aboutPost,
  accountOf,
  channelOf,
  defaultLimit,
  limitMeaning,
  limitOf,
  type OwnFlags,
} from './reports-arguments.ts';
import {
  type PostAddress,
  postLines,
  postName,
  type Report,
  reportLines,
  reportTable,
  type ShownPost,
} from './reports-view.ts';
import { asksStorage } from './storage-command.ts';
import { note, print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';
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
        .action((channel, sequence, _, of) => show({ channel_id: channel, sequence }, of)),
    )
    .addCommand(
      aboutPost('dismiss', 'remove the reports about a post')
        .option('--account <id>', 'only the reports of this account', accountOf)
        .action((channel, sequence, _, of) => dismiss({ channel_id: channel, sequence }, of)),
    )
    .addCommand(withholdCommand())
    .addCommand(restoreCommand())
    .addCommand(withheldCommand());
}

async function list(of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, own, config) => {
    const { channel: channel_id, limit = defaultLimit, json = false } = own;
    const scope = channel_id === undefined ? {} : { channel_id };
    // One more than the limit shows whether there are more.
    const found = await verbs.all<Report>('report', 'list', scope, limit + 1);
    const reports = found.slice(0, limit).reverse();
    if (json) print(reports.map((report) => terminalJson(report)));
    else if (reports.length > 0) print(reportTable(reports));
    else note(config.host.channels ? 'no reports' : 'no reports: host.channels is off');
    if (found.length > limit) note('older reports are not shown: give a higher --limit');
  });
}

async function show(address: PostAddress, of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, { limit = defaultLimit, json = false }) => {
    const post = (await verbs.call('report', 'show', { ...address })) as unknown as ShownPost;
    const found = await verbs.all<Report>('report', 'list', { ...address }, limit + 1);
    const reports = found.slice(0, limit).reverse();
    if (post.post === 'gone' && reports.length === 0) {
      throw new Error(
        `${postName(address)}: no such post and no report about it: check channel and sequence`,
      );
    }
    if (json) print([terminalJson({ ...post, reports })]);
    else print([...postLines(post), '', ...reportLines(reports)]);
    if (found.length > limit) note('older reports are not shown: give a higher --limit');
  });
}

async function dismiss(address: PostAddress, of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, { account }) => {
    const by = account === undefined ? {} : { account };
    const { dismissed } = await verbs.call('report', 'dismiss', { ...address, ...by });
    print([`${dismissed === 1 ? '1 report' : `${dismissed} reports`} dismissed`]);
  });
}
