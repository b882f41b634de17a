/** What a command sends: text of its arguments or of standard input, and files. */
import type { Command } from 'commander';
import { sealFiles } from '../attachment-files.ts';
import type { AccountSession } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { several } from './context.ts';

/** Options of commands that send text. */
export interface TextOptions {
  readonly markdown?: boolean;
}

/** Options of commands that send text and files. */
export interface DraftOptions extends TextOptions {
  readonly file?: readonly string[];
}

export function withText(command: Command): Command {
  return command.option('--markdown', 'the text is CommonMark');
}

export function withDraft(command: Command): Command {
  return withText(command).option('--file <path>', 'send a file with it (repeatable)', several);
}

export function contentTypeOf({ markdown = false }: TextOptions): string {
  return markdown ? 'text/markdown; variant=CommonMark' : 'text/plain';
}

/**
 * Returns text and files as given; without both, the text is read from standard input.
 * @throws UsageError for a file that cannot be read; ClientError
 */
export async function draftOf(
  session: AccountSession,
  words: readonly string[],
  options: DraftOptions,
) {
  const { file: paths = [] } = options;
  const isRead = words.length === 0 && paths.length === 0;
  // The line feed that ends the last line is no part of the text.
  const text = isRead
    ? (await session.environment.readInput()).replace(/\r?\n$/, '')
    : words.join(' ');
  if (text === '' && paths.length === 0) {
    throw new UsageError('the text is empty: give a text, or a file with --file');
  }
  const attachments = await sealFiles(session, paths);
  return {
    ...((isRead || text !== '') && { text, contentType: contentTypeOf(options) }),
    ...(attachments.length > 0 && { attachments }),
  };
}
