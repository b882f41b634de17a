/** `posthouse account export`: what the relay keeps of an account, as one file for the person. */
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { JsonObject } from '@posthouse/protocol/json';
import type { Command } from 'commander';
import { onDiskOf, partialFolder } from '../backup/index.ts';
import { longCommand } from './long-command.ts';
import { accountOf } from './reports-arguments.ts';
import { subcommand } from './storage-command.ts';
import { print } from './terminal-output.ts';
import { withVerbs } from './verb-command.ts';

const help = `
Writes all that the relay keeps of one account to a new file, from one moment, whether the relay runs or
not: profile, devices, route, sessions without their secrets, messages, groups, channels, reports,
attachments by name and size, counts. Messages are sealed: the relay cannot read them, and says so in the
file. Hand it to the person alone: it says with whom they were in contact.

The file is JSON Lines: one object per line, each with its kind; the first line says whose it is, the last
how many lines of each kind there are. It has mode 0600 and appears when it is complete.

Exit status: 0 made, 1 not made or no such account, 2 wrong arguments or configuration.`;

/** Bytes of a text that are written at once. */
const chunkLength = 65_536;

/** Creates `posthouse account export`. */
export function exportCommand(): Command {
  return subcommand('export', 'write all that the relay keeps of an account to a file')
    .argument('<account>', 'ID of the account', accountOf)
    .requiredOption('--to <file>', 'the file to be made')
    .addHelpText('after', help)
    .action((account, own: { readonly to: string }, of) => run(account, resolve(own.to), of));
}

async function run(account: string, to: string, of: Command): Promise<void> {
  const lines = await longCommand({
    stopped: 'nothing was made; run the same command again',
    work: (parts) =>
      onDiskOf(dirname(to), async () => {
        await using partial = await partialFolder(to);
        const lines = await writeLines(partial.file, (emit) =>
          withVerbs(of, (verbs) => verbs.call('account', 'export', { account }), {
            ...parts,
            emit,
          }),
        );
        parts.signal.throwIfAborted();
        await partial.complete();
        return lines;
      }),
  });
  if (lines !== undefined) print([`exported: ${to}, ${lines} lines`]);
}

/** Writes items as lines of a new file; returns how many. */
async function writeLines(
  file: string,
  work: (emit: (items: readonly JsonObject[]) => Promise<void>) => Promise<unknown>,
): Promise<number> {
  await using handle = await open(file, 'wx', 0o600);
  let text = '';
  let lines = 0;
  await work(async (items) => {
    for (const item of items) {
      text += `${JSON.stringify(item)}\n`;
      if (text.length < chunkLength) continue;
      await handle.writeFile(text);
      text = '';
    }
    lines += items.length;
  });
  await handle.writeFile(text);
  return lines;
}
