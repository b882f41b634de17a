import {
  type ContentReference,
  checkDirectMessage,
  type DirectMessage,
  ProtocolError,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { buildConversations } from '../conversations/build-conversations.ts';
import type { ListOptions } from '../conversations/list-options.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import { type Message, type MessageKey, toMessage } from '../messages/message.ts';
import { currentRow } from '../messages/message-queue.ts';
import { listMessages } from '../messages/message-rows.ts';
import { cancelMessage, postMessage, settledMessage } from '../messages/post-message.ts';
import { sendQueued } from '../messages/send-message.ts';
import { laneOf, sendWaiting } from '../messages/send-queue.ts';
import { checkDraftId, type NamedDraft } from '../sync/draft-outcomes.ts';
import { type Abortable, signalOf } from './options.ts';

/** A message to send: text, attachments, or both. */
export interface Draft {
  readonly text?: string;
  /** Media type of the text; `text/plain` by default. */
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  /** The message this one answers. */
  readonly replyTo?: MessageKey;
}

/**
 * Sends, lists and gets direct messages of the account.
 *
 * @example
 * const [peer] = await account.contacts.list();
 * if (peer !== undefined) await account.messages.send(peer.account, { text: 'hello' });
 * const conversation = await account.messages.list({ limit: 50 });
 */
export class Messages {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Stores a message to a contact, or a note to the own account; it is sent in the background, and
   * by `sync` and `follow`. Messages of one conversation arrive in the order of these calls. A draft with
   * a `draftId` is posted once at most: see `conversations.withdrawDraft`.
   *
   * @returns the message once it is stored, with the status `waiting`
   * @throws ClientError `not_a_contact`, `invalid_input`; never for being offline
   * @example
   * const note = await account.messages.post(account.id, { text: 'a note to myself' });
   * console.log(note.status); // waiting
   */
  async post(to: string, draft: Draft & NamedDraft): Promise<Message> {
    checkDraftId(draft);
    const { row } = await postMessage(this.#core, to, directMessage(this.#core, draft), draft);
    this.#core.sender.start(laneOf(to), sendWaiting(this.#core, to));
    return toMessage(row);
  }

  /**
   * Stores a message as `post` does, and waits for the relay's answer. If there is none, the message
   * stays stored, and the next `sync` sends it in its place.
   *
   * @returns the message; its `status` is what the relay reported about the delivery
   * @throws ClientError `not_a_contact`, `no_recipient_device`, `invalid_input`
   * @throws RelayRefused, RelayMisbehaviour, RelayUnreachable; all of them with `kept`
   * @example
   * const sent = await account.messages.send(account.id, { text: 'a note to myself' });
   * console.log(sent.status); // target_accepted
   */
  async send(to: string, draft: Draft, options: Abortable = {}): Promise<Message> {
    const stored = await postMessage(this.#core, to, directMessage(this.#core, draft));
    const row = await sendQueued(this.#core, stored, signalOf(options));
    return toMessage(row);
  }

  /**
   * Waits until a message of this device has an answer: sends what waits in its conversation.
   *
   * @returns the message; a `status` of `rejected` or `failed` comes with its `error`
   * @throws ClientError `invalid_input` for a message that this device does not have
   * @throws RelayRefused, RelayMisbehaviour, RelayUnreachable with `kept` if it may still be sent
   * @example
   * const note = await account.messages.post(account.id, { text: 'a note to myself' });
   * const { status } = await account.messages.settled(note, { signal: AbortSignal.timeout(5_000) });
   */
  async settled(key: MessageKey, options: Abortable = {}): Promise<Message> {
    return toMessage(await settledMessage(this.#core, rowKey(key), signalOf(options)));
  }

  /**
   * Cancels a message that is still `waiting`, or that was rejected or failed; a cancelled message is
   * not listed any more.
   *
   * @throws ClientError `already_sent`; `invalid_input` for a message that this device does not have
   * @example
   * const note = await account.messages.post(account.id, { text: 'written too early' });
   * await account.messages.cancel(note).catch((error: unknown) => {
   *   if (!isClientError(error, 'already_sent')) throw error;
   * });
   */
  async cancel(key: MessageKey): Promise<Message> {
    return toMessage(await cancelMessage(this.#core, rowKey(key)));
  }

  /**
   * Lists stored messages in order of arrival, or `newestFirst`, without refused ones and objects of
   * other kinds. Positions are the `order` of messages.
   *
   * @param options.with only the conversation with this account; the own one for notes
   * @throws ClientError `invalid_input`
   * @example
   * const latest = await account.messages.list({ with: peer, limit: 20, newestFirst: true });
   * const before = latest.at(-1)?.order ?? 0;
   * const earlier = await account.messages.list({ with: peer, before, limit: 20, newestFirst: true });
   */
  async list(options: ListOptions & { readonly with?: string } = {}): Promise<Message[]> {
    await buildConversations(this.#core);
    const rows = await this.#core.store.read((tx) => listMessages(tx, options));
    return rows.map(toMessage);
  }

  /**
   * Gets one stored message; `undefined` if this device does not have it.
   *
   * @example
   * const sent = await account.messages.send(account.id, { text: 'a note' });
   * const stored = await account.messages.get(sent);
   */
  async get({ from, messageId }: MessageKey): Promise<Message | undefined> {
    const key = { from, message_id: messageId };
    const row = await this.#core.store.read((tx) => currentRow(tx, key));
    return row === undefined ? undefined : toMessage(row);
  }
}

function rowKey({ from, messageId }: MessageKey) {
  return { from, message_id: messageId };
}

function directMessage(core: AccountCore, draft: Draft): JsonObject & DirectMessage {
  const { text, contentType = 'text/plain', attachments = [], replyTo } = draft;
  const content: DirectMessage = {
    $type: core.network.type('message.direct'),
    ...(text !== undefined && { body: { content_type: contentType, text } }),
    ...(attachments.length > 0 && { attachments: [...attachments] }),
    ...(replyTo !== undefined && {
      reply_to: { from: replyTo.from, message_id: replyTo.messageId },
    }),
  };
  try {
    checkDirectMessage(core.network, content);
    return content;
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `message: ${cause.message}`, { cause });
  }
}
