/** `posthouse account delete`: removes an account that is at home here. */
import type { JsonObject } from '@posthouse/protocol/json';
import { terminalColumns } from '@posthouse/protocol/terminal';
import type { Command } from 'commander';
import { isConfirmed } from './confirm.ts';
import { longCommand } from './long-command.ts';
import { accountOf } from './reports-arguments.ts';
import { subcommand } from './storage-command.ts';
import { note, oneLine, print } from './terminal-output.ts';
import { type VerbCaller, withVerbs } from './verb-command.ts';

const help = `
What goes: sessions, devices, profile, the stored route, the timeline, attachments, messages that wait for
delivery (they become failed), reports that the account made, and its right to come. A running relay
removes the rows and files within minutes. The encrypted text of a message stays until its retention is
over: the other person's copy has the same text.

What stays, and why: the numbers of its last message, route and device state, so that none is given or
accepted twice if the account comes again; results of messages until their retention is over, since others
may still ask for them; its posts, messages and memberships in groups and channels of this relay, which
belong to all who read them. It can go on with those from another relay. Groups and channels that it owns,
administers or moderates are listed before the question, with --yes afterwards: let the person hand them to
others before, if they can.

The account is refused for a minute. To come again it needs the right of a new account. Use posthouse
block to keep it out. There is no way back.`;

/** Groups and channels that are printed. */
const mostShown = 20;

interface OwnFlags {
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** Creates `posthouse account delete`. */
export function deleteCommand(): Command {
  return subcommand('delete', 'remove an account that is at home here')
    .argument('<account>', 'ID of the account', accountOf)
    .option('--yes', 'do not ask for confirmation')
    .addHelpText('after', help)
    .action((account, _, of) => run(account, of));
}

async function run(account: string, of: Command): Promise<void> {
  const { yes = false } = of.optsWithGlobals<OwnFlags>();
  if (!yes) await withVerbs(of, (verbs) => confirm(verbs, account));
  const deleted = await longCommand({
    stopped:
      'a running relay goes on; without one the account is still here: run the command again',
    work: (parts) => withVerbs(of, (verbs) => verbs.call('account', 'delete', { account }), parts),
  });
  if (deleted === undefined) return;
  const { records, blobs, manages, manages_more } = deleted;
  const attachments = blobs === 1 ? '1 attachment' : `${blobs} attachments`;
  print([`${account} is deleted, with ${records} of its messages and ${attachments}`]);
  if (yes) linesOf(manages as JsonObject[], manages_more === true).forEach(note);
}

/** @throws Error if the operator does not want it */
async function confirm(verbs: VerbCaller, account: string): Promise<void> {
  const { items, more } = await verbs.call('account', 'manages', { account });
  const lines = linesOf(items as JsonObject[], more === true);
  const question = `${account} and its messages here are deleted for good.`;
  if (await isConfirmed([...lines, question], 'delete it?')) return;
  throw new Error('not deleted: answer y, or give --yes');
}

/** Names the groups and channels that stay without the account. */
function linesOf(managed: readonly JsonObject[], hasMore: boolean): string[] {
  if (managed.length === 0) return [];
  const shown = managed.slice(0, mostShown);
  const rows = shown.map(({ kind, id, role, name }) =>
    [kind, id, role, oneLine(String(name ?? ''))].map(String),
  );
  const others = `${managed.length - shown.length}${hasMore ? ' or more' : ''}`;
  return [
    'These stay, and have no such owner, administrator or moderator then:',
    ...terminalColumns(rows).map((line) => `  ${line}`),
    ...(managed.length > shown.length ? [`  and ${others} others`] : []),
  ];
}
