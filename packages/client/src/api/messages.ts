import {
  type ContentReference,
  checkDirectMessage,
  type DirectMessage,
  ProtocolError,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { contactRow } from '../contacts/contact-rows.ts';
import { checkReferences } from '../content/check-references.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import { type Message, toMessage } from '../messages/message.ts';
import { listMessages, type MessageRow, messageRow } from '../messages/message-rows.ts';
import { sendMessage } from '../messages/send-message.ts';
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

/** Identifies a message: IDs are chosen by senders, so only both together are unique. */
export interface MessageKey {
  readonly from: string;
  readonly messageId: string;
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
   * Sends a message to a contact, or a note to the own account. If the relay's answer is lost, the
   * message stays in the outbox and the next `sync` sends it again, unchanged.
   *
   * @returns the message; its `status` is what the relay reported about the delivery
   * @throws ClientError `not_a_contact`, `no_recipient_device`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const sent = await account.messages.send(account.id, { text: 'a note to myself' });
   * console.log(sent.status); // target_accepted
   */
  async send(to: string, draft: Draft, options: Abortable = {}): Promise<Message> {
    const core = this.#core;
    const authorization = to === core.account ? undefined : await this.#grantOf(to);
    const content = directMessage(core, draft);
    await checkReferences('message', content);
    const row = await sendMessage(core, {
      to,
      content,
      authorization,
      purpose: { kind: 'direct' },
      signal: signalOf(options),
    });
    return toMessage(row);
  }

  /**
   * Lists stored messages in order of arrival, without refused ones and objects of other kinds.
   *
   * @param options.after `order` of the last message that was seen
   * @param options.limit how many stored records are read; fewer messages may be returned
   * @example
   * const first = await account.messages.list({ limit: 20 });
   * const next = await account.messages.list({ after: first.at(-1)?.order ?? 0, limit: 20 });
   */
  async list(
    options: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<Message[]> {
    const rows = await this.#core.store.read((tx) => listMessages(tx, options));
    return rows.filter((row) => isShown(this.#core, row)).map(toMessage);
  }

  /**
   * Gets one stored message; `undefined` if this device does not have it.
   *
   * @example
   * const sent = await account.messages.send(account.id, { text: 'a note' });
   * const stored = await account.messages.get(sent);
   */
  async get({ from, messageId }: MessageKey): Promise<Message | undefined> {
    const row = await this.#core.store.read((tx) =>
      messageRow(tx, { from, message_id: messageId }),
    );
    return row === undefined ? undefined : toMessage(row);
  }

  async #grantOf(account: string) {
    const { record, relationship } = await this.#core.store.read((tx) => contactRow(tx, account));
    if (record?.status !== 'active' || record.grant_from_contact === undefined) {
      const state = relationship.awaiting
        ? 'has not answered yet: try again after it accepts the contact request'
        : 'is not a contact: add or accept the contact first';
      throw new ClientError('not_a_contact', `${account} ${state}`);
    }
    return record.grant_from_contact;
  }
}

function isShown(core: AccountCore, row: MessageRow): boolean {
  if (row.outcome === 'stored') return true;
  return row.outcome === 'applied' && row.content?.$type === core.network.type('message.direct');
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
