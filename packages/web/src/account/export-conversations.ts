/** What this device has of its conversations, as a file. */
import type { Conversation, MessageContent } from '@posthouse/client';
import { visibleName, visibleText } from '@posthouse/client/visible-text';
import type { WorkerAccount } from '@posthouse/client/web';
import type { SavedFile } from '../state/save-file.ts';
import { s } from './settings-text.ts';

/** Messages that are read at once. */
const page = 200;

/** A message of a person, group or channel. */
interface ExportedMessage extends MessageContent {
  readonly from: string;
  /** Unix seconds. */
  readonly at: number;
  readonly status?: string;
}

type Listed = Pick<Conversation, 'kind' | 'id' | 'title'>;

/** Yields the messages of a conversation, the oldest first, in pages. */
async function* pagesOf(
  account: WorkerAccount,
  { kind, id }: Listed,
): AsyncGenerator<readonly ExportedMessage[]> {
  const list = async (range: { readonly limit: number; readonly after?: number }) => {
    switch (kind) {
      case 'person': {
        const found = await account.messages.list({ ...range, with: id });
        return found.map(({ order, createdAt, ...rest }) => entry(rest, order, createdAt));
      }
      case 'group': {
        const found = await account.groups.listMessages(id, range);
        return found.map(({ sequence, createdAt, ...rest }) => entry(rest, sequence, createdAt));
      }
      case 'channel': {
        const found = await account.channels.listPosts(id, range);
        return found.map(({ sequence, acceptedAt, ...rest }) => entry(rest, sequence, acceptedAt));
      }
    }
  };
  for (let after: number | undefined; ; ) {
    const found = await list({ limit: page, ...(after !== undefined && { after }) });
    yield found.map(({ message }) => message);
    after = found.at(-1)?.position;
    if (found.length < page) return;
  }
}

function entry(
  message: MessageContent & { readonly from: string; readonly status?: string },
  position: number,
  at: number,
): { readonly position: number; readonly message: ExportedMessage } {
  const { from, body, attachments, status } = message;
  return {
    position,
    message: {
      ...{ from, at },
      ...(body && { body }),
      ...(attachments && { attachments }),
      ...(status !== undefined && { status }),
    },
  };
}

/**
 * Reads all conversations into a file. What others wrote stays as it is in JSON; in the text, characters
 * that mislead are named.
 *
 * @param options.progress called with the number of messages that were read
 * @throws the signal's reason
 */
export async function exportConversations(
  account: WorkerAccount,
  {
    form,
    signal,
    progress,
  }: {
    readonly form: 'json' | 'text';
    readonly signal: AbortSignal;
    readonly progress: (count: number) => void;
  },
): Promise<{ readonly file: SavedFile; readonly count: number }> {
  const parts: string[] = [];
  let count = 0;
  const conversations = await account.conversations.list();
  for (const [index, conversation] of conversations.entries()) {
    const { kind, id, title } = conversation;
    const head = { kind, id, ...(title !== undefined && { title }) };
    parts.push(
      form === 'json'
        ? `${index === 0 ? '' : ',\n'}${JSON.stringify(head).slice(0, -1)},"messages":[`
        : `\n== ${title === undefined ? id : `${visibleName(title)} (${id})`} ==\n`,
    );
    let isFirst = true;
    for await (const messages of pagesOf(account, conversation)) {
      signal.throwIfAborted();
      for (const message of messages) {
        if (form === 'text') parts.push(lineOf(message));
        else parts.push(`${isFirst ? '\n' : ',\n'}${JSON.stringify(message)}`);
        isFirst = false;
      }
      count += messages.length;
      progress(count);
    }
    if (form === 'json') parts.push(']}');
  }
  const at = new Date().toISOString();
  const head =
    form === 'json'
      ? `{"account":${JSON.stringify(account.id)},"exportedAt":"${at}","conversations":[\n`
      : `${account.id}\n${at}\n`;
  const end = form === 'json' ? '\n]}\n' : '';
  const type = form === 'json' ? 'application/json' : 'text/plain;charset=utf-8';
  const content = new Blob([head, ...parts, end], { type });
  const suffix = form === 'json' ? 'json' : 'txt';
  return { file: { name: `conversations-${at.slice(0, 10)}.${suffix}`, content }, count };
}

function lineOf({ from, at, body, attachments = [] }: ExportedMessage): string {
  const lines = [
    ...(body === undefined ? [] : [visibleText(body.text)]),
    ...attachments.map(({ content_type }) => s.attachmentOf(visibleName(content_type))),
  ];
  // Further lines are indented, so that no message can look like another one.
  const text = lines.join('\n').replaceAll('\n', '\n  ');
  const time = new Date(Math.min(at, 253_402_300_799) * 1_000).toISOString();
  return `${time} ${from}\n  ${text}\n`;
}
