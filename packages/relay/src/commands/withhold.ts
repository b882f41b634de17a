/** `posthouse reports withhold`, `restore` and `withheld`: hides posts from a channel's timeline. */
import { terminalColumns } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { isConfirmed } from './confirm.ts';
import {
  aboutPost,
  defaultLimit,
  limitMeaning,
  limitOf,
  type OwnFlags,
} from './reports-arguments.ts';
import { type PostAddress, postLines, postName, type ShownPost } from './reports-view.ts';
import { subcommand } from './storage-command.ts';
import { instant, note, print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

/** A withheld post, as the verbs list it. */
interface Withheld extends PostAddress {
  readonly account: string;
  readonly withheld_at: number;
  readonly keep_until: number;
}

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
    .action((channel, sequence, _, of) => withhold({ channel_id: channel, sequence }, of));
}

/** Creates `posthouse reports restore`. */
export function restoreCommand(): Command {
  return aboutPost('restore', 'make a withheld post readable again, with all its edits').action(
    (channel, sequence, _, of) => restore({ channel_id: channel, sequence }, of),
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
  await withVerbs<OwnFlags, void>(of, async (verbs, { yes }) => {
    if (!yes) {
      const post = (await verbs.call('report', 'show', { ...address })) as unknown as ShownPost;
      const isSure =
        post.post !== 'readable' || (await isConfirmed(postLines(post), 'withhold it?'));
      if (!isSure) throw new Error('not withheld: answer y, or give --yes');
    }
    const { is_new, dismissed } = await verbs.call('report', 'withhold', { ...address });
    const reports = dismissed === 1 ? '1 report' : `${dismissed} reports`;
    const already = is_new === true ? '' : ' already';
    print([`${postName(address)} is withheld${already}, ${reports} dismissed`]);
  });
}

async function restore(address: PostAddress, of: Command): Promise<void> {
  await withVerbs(of, (verbs) => verbs.call('report', 'restore', { ...address }));
  print([`${postName(address)} is readable again`]);
}

async function list(of: Command): Promise<void> {
  await withVerbs<OwnFlags, void>(of, async (verbs, { limit = defaultLimit, json = false }) => {
    const found = await verbs.all<Withheld>('report', 'withheld', {}, limit + 1);
    const posts = found.slice(0, limit).reverse();
    if (json) print(posts.map((post) => JSON.stringify(post)));
    else if (posts.length > 0) print(table(posts));
    else note('no post is withheld');
    if (found.length > limit) note('older posts are not shown: give a higher --limit');
  });
}

function table(posts: readonly Withheld[]): string[] {
  const rows = posts.map((post) => [
    instant(post.withheld_at),
    post.channel_id,
    String(post.sequence),
    post.account,
    instant(post.keep_until),
  ]);
  return terminalColumns([['withheld', 'channel', 'post', 'by', 'kept until'], ...rows]);
}
