import type { ConversationKey } from '../conversations/conversation-rows.ts';
import {
  type Conversation,
  getConversation,
  listConversations,
} from '../conversations/list-conversations.ts';
import { markRead } from '../conversations/mark-read.ts';
import type { AccountCore } from '../core.ts';
import { checkDraftId, markWithdrawn } from '../sync/draft-outcomes.ts';

/**
 * Lists what a person sees first: conversations with other accounts (and notes), groups and followed
 * channels, with their last messages and how many are unread. Everything is read from the store.
 *
 * @example
 * for (const { title, id, unread, lastMessage } of await account.conversations.list()) {
 *   console.log(title ?? id, unread, lastMessage?.body?.text);
 * }
 */
export class Conversations {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Lists conversations, the one with the newest message first. A person is listed from the first
   * message on, a group from joining, a channel from the first read after following it.
   *
   * @param options.before a conversation of an earlier call: only those after it in the list
   * @throws ClientError `invalid_input`
   * @example
   * const first = await account.conversations.list({ limit: 20 });
   * const last = first.at(-1);
   * const next = last && (await account.conversations.list({ limit: 20, before: last }));
   */
  list(
    options: { readonly limit?: number; readonly before?: Pick<Conversation, 'place'> } = {},
  ): Promise<Conversation[]> {
    return listConversations(this.#core, options);
  }

  /**
   * Reads one conversation; `undefined` if it is not listed.
   *
   * @example
   * const notes = await account.conversations.get({ kind: 'person', id: account.id });
   */
  get({ kind, id }: ConversationKey): Promise<Conversation | undefined> {
    return getConversation(this.#core, { kind, id });
  }

  /**
   * Marks messages as read, here at once and on the account's other devices within about a minute of
   * synchronizing (decision 0039). Nothing else marks messages as read: neither a
   * message that the account sends, here or on another device, nor reading a list.
   *
   * @param options.through `order` of a message or `sequence` of a group message or post: everything
   *   through it is read; by default everything that is stored now
   * @throws ClientError `invalid_input`
   * @example
   * const [conversation] = await account.conversations.list({ limit: 1 });
   * if (conversation !== undefined) await account.conversations.markRead(conversation);
   */
  markRead(
    { kind, id }: ConversationKey,
    options: { readonly through?: number } = {},
  ): Promise<void> {
    return markRead(this.#core, { kind, id }, options.through);
  }

  /**
   * Withdraws a draft for which a program called `post` with a `draftId`, and ended before it knew the result: a
   * call of `post` that is still under way in another program stores nothing then.
   *
   * @returns whether it is withdrawn; `false` if a message, group message or post of it is stored
   * @throws ClientError `invalid_input`
   * @example
   * const draftId = crypto.randomUUID();
   * await account.messages.post(account.id, { text: 'a note to myself', draftId });
   * console.log(await account.conversations.withdrawDraft(draftId)); // false
   */
  async withdrawDraft(draftId: string): Promise<boolean> {
    checkDraftId({ draftId: draftId ?? null });
    return await this.#core.store.write((tx) => markWithdrawn(tx, draftId));
  }
}
