import {
  type ContentReference,
  checkDirectMessage,
  type DirectMessage,
  ProtocolError,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { contactRow } from '../contacts/contact-rows.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import { listMessages, type MessageRow, messageRow } from '../messages/message-rows.ts';
import { sendMessage } from '../messages/send-message.ts';
import { type Abortable, signalOf } from './options.ts';

/** A message to send: text, attachments, or both. */
export interface Draft {
  readonly text?: string;
  /** Media type of the text; plain text by default. */
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  readonly replyTo?: { readonly from: string; readonly message_id: string };
}

/** Messages, sent and received. */
export class Messages {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Sends a message to a contact, or a note to the own account. Where the relay's answer is lost
   * the message stays in the outbox and goes out again, unchanged, with the next `sync`.
   *
   * @returns the message; its `status` is what the relay said of the delivery
   * @throws ClientError `not_a_contact`, `no_recipient_device`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async send(to: string, draft: Draft, options: Abortable = {}): Promise<MessageRow> {
    const core = this.#core;
    const authorization = to === core.account ? undefined : await this.#grantOf(to);
    return await sendMessage(core, {
      to,
      content: directMessage(core, draft),
      authorization,
      purpose: { kind: 'direct' },
      signal: signalOf(options),
    });
  }

  /** Messages in order of arrival; those of other kinds and refused ones are left out. */
  async list(
    options: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<MessageRow[]> {
    const rows = await this.#core.store.read((tx) => listMessages(tx, options));
    return rows.filter((row) => isShown(this.#core, row));
  }

  get(key: { readonly from: string; readonly message_id: string }) {
    return this.#core.store.read((tx) => messageRow(tx, key));
  }

  async #grantOf(account: string) {
    const { record, relationship } = await this.#core.store.read((tx) => contactRow(tx, account));
    if (record?.status !== 'active' || record.grant_from_contact === undefined) {
      const state = relationship.awaiting ? 'has not answered yet' : 'is not a contact';
      throw new ClientError('not_a_contact', `${account} ${state}`);
    }
    return record.grant_from_contact;
  }
}

function isShown(core: AccountCore, row: MessageRow): boolean {
  if (row.outcome === 'stored') return true;
  return row.outcome === 'applied' && row.content?.$type === core.network.type('message.direct');
}

function directMessage(core: AccountCore, draft: Draft): JsonObject {
  const { text, contentType = 'text/plain', attachments = [], replyTo } = draft;
  const content: DirectMessage = {
    $type: core.network.type('message.direct'),
    ...(text !== undefined && { body: { content_type: contentType, text } }),
    ...(attachments.length > 0 && { attachments: [...attachments] }),
    ...(replyTo !== undefined && {
      reply_to: { from: replyTo.from, message_id: replyTo.message_id },
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
