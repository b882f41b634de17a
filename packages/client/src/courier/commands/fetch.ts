import type { Command } from 'commander';
import type { Message } from '../../messages/message.ts';
import { fetchFiles } from '../attachment-files.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { messageShape } from '../json-shapes.ts';
import { accountOf } from '../names.ts';
import { onAccount, withOptions } from './context.ts';

interface FetchOptions {
  readonly to: string;
  readonly from?: string;
}

/** Adds the options of commands that write a message's files. */
export function withFolder(command: Command): Command {
  return command.option('--to <folder>', 'where to write the files', '.');
}

export function fetchCommand(base: Command, environment: CliEnvironment): Command {
  const command = withFolder(withOptions(base)).option(
    '--from <account>',
    'sender of the message, if several messages have this ID',
  );
  return onAccount<FetchOptions>(command, environment, async (session, { options, args }) => {
    const [messageId = ''] = args;
    const message = await findMessage(session, messageId, options.from);
    const { attachments = [] } = message ?? {};
    if (attachments.length === 0) {
      throw new UsageError(
        `no message ${messageId} with files is stored: see courier inbox --json`,
      );
    }
    await fetchFiles(session, attachments, { folder: options.to, name: messageId });
  });
}

/** Finds a message. Senders choose its ID, so that two messages may have the same one. */
async function findMessage(
  { account }: AccountSession,
  messageId: string,
  from: string | undefined,
) {
  if (from !== undefined) {
    const found = await account.messages.get({ from: await accountOf(account, from), messageId });
    return found && messageShape(found, account.id);
  }
  const senders = (await account.contacts.list()).map((contact) => contact.account);
  const found: Message[] = [];
  for (const sender of [account.id, ...senders]) {
    const message = await account.messages.get({ from: sender, messageId });
    if (message !== undefined) found.push(message);
  }
  const [first, second] = found;
  if (second !== undefined) {
    throw new UsageError(`several messages have the ID ${messageId}: name the sender with --from`);
  }
  return first && messageShape(first, account.id);
}
