/** `courier conversations`: people, groups and channels in one list. */
import type { Command } from 'commander';
import type { Conversation } from '../../conversations/list-conversations.ts';
import type { CliEnvironment } from '../client-session.ts';
import { failureOf } from '../failure.ts';
import { catchUp, noteEvents } from '../message-output.ts';
import { conversationName } from '../names.ts';
import { columns, localTime, oneLine } from '../output.ts';
import { onAccount, withOptions } from './context.ts';
import { wholeNumber } from './messages.ts';

/** Characters of the last message that are shown. */
const lineLength = 40;

export function conversationsCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base).option('--limit <number>', 'largest number of them', '50');
  return onAccount<{ limit: string }>(command, environment, async (session, { options }) => {
    const { account, out } = session;
    const limit = wholeNumber('--limit', options.limit);
    const { events, failure } = await catchUp(session);
    if (failure !== undefined) out.note(failureOf(failure).message);
    const found = limit === 0 ? [] : await account.conversations.list({ limit });
    const lines: string[][] = [];
    for (const one of out.isJson ? [] : found) {
      lines.push([
        timeOf(one),
        one.kind,
        await conversationName(session, one),
        [
          ...(one.unread > 0 ? [`${one.unread} unread`] : []),
          ...(one.waiting > 0 ? [`${one.waiting} waiting`] : []),
        ].join(', '),
        oneLine(one.lastMessage?.body?.text.slice(0, lineLength) ?? ''),
      ]);
    }
    out.result({ conversations: found.map(shapeOf) }, () => columns(lines));
    await noteEvents(session, events);
  });
}

function acceptedAt({ lastMessage }: Conversation): number | undefined {
  return (
    lastMessage && ('createdAt' in lastMessage ? lastMessage.createdAt : lastMessage.acceptedAt)
  );
}

function timeOf(conversation: Conversation): string {
  const at = acceptedAt(conversation);
  return at === undefined ? '' : localTime(at);
}

function shapeOf(conversation: Conversation) {
  const { kind, id, title, unread, waiting, lastMessage } = conversation;
  const last = lastMessage && { at: acceptedAt(conversation), text: lastMessage.body?.text };
  return { kind, id, title, unread, waiting, last };
}
