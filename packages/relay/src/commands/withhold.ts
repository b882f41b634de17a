/** `posthouse reports withhold`, `restore` and `withheld`: hides posts from a channel's timeline. */
import { terminalColumns } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import {
  listWithheld,
  readReportedPost,
  restorePost,
  type WithheldPost,
  withholdPost,
} from '../channels/index.ts';
import { systemClock } from '../clock.ts';
import { postRestored, postWithheld } from '../observability/events.ts';
import { createLog } from '../observability/log.ts';
import { isConfirmed } from './confirm.ts';
import {
  aboutPost,
  defaultLimit,
  flagsOf,
  limitMeaning,
  limitOf,
  type PostAddress,
} from './reports-arguments.ts';
import { postLines, postName } from './reports-view.ts';
import { subcommand, withStorage } from './storage-command.ts';
import { instant, note, print } from './terminal-output.ts';

const withholdHelp = `
The relay no longer returns the post and its edits to any client; to clients it looks like a post
whose retention is over. Copies that clients have already stay there. The post is stored until its
retention is over, as the protocol demands, and \`restore\` makes it readable again. The owner and
moderators can still delete it. The reports about it are dismissed.`;

/** Creates `posthouse reports withhold`. */
export function withholdCommand(): Command {
  return aboutPost('withhold', "hide a post from its channel's timeline, and dismiss its reports")
    .option('--yes', 'do not ask for confirmation')
    .addHelpText('after', withholdHelp)
    .action((channel, sequence, _, of) => withhold({ channelId: channel, sequence }, of));
}

/** Creates `posthouse reports restore`. */
export function restoreCommand(): Command {
  return aboutPost('restore', 'make a withheld post readable again, with all its edits').action(
    (channel, sequence, _, of) => restore({ channelId: channel, sequence }, of),
  );
}

/** Creates `posthouse reports withheld`. */
export function withheldCommand(): Command {
  return subcommand('withheld', 'list withheld posts, the newest last')
    .option('--limit <number>', limitMeaning, limitOf)
    .option('--json', 'print one JSON object per line')
    .action((_, of) => list(of));
}

async function withhold(address: PostAddress, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  if (!own.yes) {
    const { post } = await withStorage(config, (storage) => readReportedPost(storage, address, 1));
    const isSure =
      post.status !== 'readable' || (await isConfirmed(postLines(address, post), 'withhold it?'));
    if (!isSure) throw new Error('not withheld: answer y, or give --yes');
  }
  const { isNew, reports } = await withStorage(config, (storage) =>
    withholdPost(storage, address, systemClock.now()),
  );
  const log = createLog(config.log);
  const { channelId: channel, sequence } = address;
  if (isNew) postWithheld({ log }, { channel, sequence, reports });
  const dismissed = `${reports === 1 ? '1 report' : `${reports} reports`} dismissed`;
  print([`${postName(address)} is withheld${isNew ? '' : ' already'}, ${dismissed}`]);
}

async function restore(address: PostAddress, of: Command): Promise<void> {
  const { config } = flagsOf(of);
  await withStorage(config, (storage) => restorePost(storage, address));
  const { channelId: channel, sequence } = address;
  postRestored({ log: createLog(config.log) }, { channel, sequence });
  print([`${postName(address)} is readable again`]);
}

async function list(of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { limit = defaultLimit, json = false } = own;
  const found = await withStorage(config, (storage) => listWithheld(storage, limit + 1));
  const posts = found.slice(-limit);
  if (json) print(posts.map((post) => JSON.stringify(wireOf(post))));
  else if (posts.length > 0) print(table(posts));
  else note('no post is withheld');
  if (found.length > limit) note('older posts are not shown: give a higher --limit');
}

function table(posts: readonly WithheldPost[]): string[] {
  const rows = posts.map((post) => [
    instant(post.withheldAt),
    post.channelId,
    String(post.sequence),
    post.account,
    instant(post.keepUntil),
  ]);
  return terminalColumns([['withheld', 'channel', 'post', 'by', 'kept until'], ...rows]);
}

function wireOf(post: WithheldPost): object {
  return {
    channel_id: post.channelId,
    sequence: post.sequence,
    account: post.account,
    withheld_at: post.withheldAt,
    keep_until: post.keepUntil,
  };
}
