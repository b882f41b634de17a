/** `posthouse reports withhold`, `restore` and `withheld`: what is public stays the operator's. */
import { createInterface } from 'node:readline/promises';
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
import {
  aboutPost,
  command,
  flagsOf,
  limitMeaning,
  limitOf,
  type Named,
  using,
  usualLimit,
} from './reports-arguments.ts';
import { instant, note, place, postLines, print } from './reports-view.ts';

const withholdHelp = `
Nobody reads the post and its edits any more, who follows the channel or who comes to it; in a client
it looks like a post whose retention is over. Copies that clients have already are theirs. It is kept
until its retention is over, as the protocol demands, and \`restore\` puts it back. Whoever may delete
it still can. The reports about it are dismissed.`;

export function withholdCommand(): Command {
  return aboutPost('withhold', "take a post out of its channel's timeline, and dismiss its reports")
    .option('--yes', 'do not ask')
    .addHelpText('after', withholdHelp)
    .action((channel, sequence, _, of) => withhold({ channelId: channel, sequence }, of));
}

export function restoreCommand(): Command {
  return aboutPost('restore', 'put a withheld post back, with all its edits').action(
    (channel, sequence, _, of) => restore({ channelId: channel, sequence }, of),
  );
}

export function withheldCommand(): Command {
  return command('withheld', 'list the posts that are withheld, the last one last')
    .option('--limit <number>', limitMeaning, limitOf)
    .option('--json', 'one JSON object a line')
    .action((_, of) => list(of));
}

async function withhold(named: Named, of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  if (!own.yes) {
    const { post } = await using(config, (storage) => readReportedPost(storage, named, 1));
    const isSure = post.status !== 'readable' || (await isConfirmed(postLines(named, post)));
    if (!isSure) throw new Error('not withheld: nobody said yes');
  }
  const { isNew, reports } = await using(config, (storage) =>
    withholdPost(storage, named, systemClock.now()),
  );
  const log = createLog(config.log);
  const { channelId: channel, sequence } = named;
  if (isNew) postWithheld({ log }, { channel, sequence, reports });
  const dismissed = `${reports === 1 ? '1 report' : `${reports} reports`} dismissed`;
  print([`${place(named)} is withheld${isNew ? '' : ' already'}, ${dismissed}`]);
}

async function restore(named: Named, of: Command): Promise<void> {
  const { config } = flagsOf(of);
  await using(config, (storage) => restorePost(storage, named));
  const { channelId: channel, sequence } = named;
  postRestored({ log: createLog(config.log) }, { channel, sequence });
  print([`${place(named)} is readable again`]);
}

async function list(of: Command): Promise<void> {
  const { config, own } = flagsOf(of);
  const { limit = usualLimit, json = false } = own;
  const found = await using(config, (storage) => listWithheld(storage, limit + 1));
  const posts = found.slice(-limit);
  if (json) print(posts.map((post) => JSON.stringify(wireOf(post))));
  else if (posts.length > 0) print(table(posts));
  else note('no post is withheld');
  if (found.length > limit) note('older ones are left out, see --limit');
}

/** Asks on standard error; an end of input is no. */
async function isConfirmed(lines: readonly string[]): Promise<boolean> {
  for (const line of lines) note(line);
  using asked = createInterface({ input: process.stdin, output: process.stderr });
  const ended = new Promise<string>((resolve) => asked.once('close', () => resolve('')));
  const answer = await Promise.race([asked.question('withhold it? [y/N] '), ended]);
  return /^y(es)?$/i.test(answer.trim());
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
