/** What an open conversation is read from and written to: one source for each kind. */
import type { Message, MessageKey } from '@posthouse/client';
import type { ContentReference } from '@posthouse/protocol';
import type { ReadonlySignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { Host } from './host.ts';

/** A message that another one answers; groups know it by its sequence, `order`. */
interface AnsweredLine extends MessageKey {
  readonly order?: number;
}

/** A message of any conversation, or a line that says what happened there. */
export interface Line
  extends Pick<Message, 'from' | 'messageId' | 'createdAt' | 'body' | 'attachments' | 'status'> {
  /** Why it was not sent: a code of the relay or the client. */
  readonly error?: { readonly code: string; readonly message: string };
  readonly replyTo?: AnsweredLine;
  /** An `order` or a `sequence`; a message that waits has the place of the last one before it. */
  readonly order: number;
  /** Instead of a message: what happened, in the person's language. */
  readonly note?: string;
  /** The reason, for experts: shown when the person opens it. */
  readonly details?: string;
  /** Whose message it is, if the conversation has more than two people; safe to show. */
  readonly sender?: string;
  /** The beginning of the message that it answers, if that is known here. */
  readonly quote?: string;
  /** After the time: that it was edited. */
  readonly mark?: string;
}

/** What is to be sent. */
export interface LineDraft {
  readonly text?: string;
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  readonly replyTo?: AnsweredLine;
  /** Names it: it is posted once at most. */
  readonly draftId?: string;
}

/** One page of lines, oldest first. */
interface LinePage {
  readonly lines: readonly Line[];
  readonly hasOlder: boolean;
}

export interface ConversationSource {
  /** Reads the newest lines. */
  read(limit: number): Promise<LinePage>;
  /** Fetches older ones from the host, if it has more than is stored here. */
  fetchOlder?(): Promise<void>;
  post(draft: LineDraft): Promise<void>;
  /** Takes back a message that has not left. */
  cancel(line: Line): Promise<void>;
  /** Why nothing can be written here; empty if it can. Persons have the composer's own rule. */
  readonly barrier?: ReadonlySignal<string>;
  readonly canReply: boolean;
  /** Shows what else can be done with a message. */
  readonly more?: (line: Line) => void;
  /** What stands above the composer: warnings, and what waits for a decision. */
  readonly Status?: ComponentType;
}

/** Makes the source of one conversation. */
export type MakeSource = (app: Host, id: string) => ConversationSource;

/** Names a line in its conversation: senders choose the IDs of their messages. */
export function keyOf({ from, messageId }: Pick<Line, 'from' | 'messageId'>): string {
  return `${from}/${messageId}`;
}

/** Returns the lines, each with the text that it answers, if that is among them. */
function withQuotes(lines: readonly Line[]): readonly Line[] {
  const named = new Map(lines.map((line) => [keyOf(line), line]));
  return lines.map((line) => {
    const answered = line.replyTo && named.get(keyOf(line.replyTo));
    return answered?.body === undefined ? line : { ...line, quote: answered.body.text };
  });
}

/** Conversations with people, and the own notes. */
export const personSource: MakeSource = ({ account: { messages } }, id) => ({
  canReply: true,
  async read(limit) {
    const newest = await messages.list({ with: id, newestFirst: true, limit: limit + 1 });
    const lines = newest.slice(0, limit).reverse();
    return { lines: withQuotes(lines), hasOlder: newest.length > limit };
  },
  async post({ replyTo, ...draft }) {
    await messages.post(id, {
      ...draft,
      ...(replyTo && { replyTo: { from: replyTo.from, messageId: replyTo.messageId } }),
    });
  },
  async cancel({ from, messageId }) {
    await messages.cancel({ from, messageId });
  },
});
