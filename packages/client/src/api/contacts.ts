import type { ContactInvite } from '@posthouse/protocol';
import { type ContactRow, contactRow, contactRows } from '../contacts/contact-rows.ts';
import {
  acceptRequest,
  addContact,
  declineRequest,
  makeInvite,
  readInvite,
  removeContact,
  renameContact,
} from '../contacts/manage-contacts.ts';
import type { AccountCore } from '../core.ts';
import type { MessageRow } from '../messages/message-rows.ts';
import { type Abortable, signalOf } from './options.ts';

/** One contact, or somebody who could become one. */
export type Contact = ContactRow;

/** Seconds an invite is good for by default: a week. */
const inviteLifetime = 604_800;

/** Other accounts. */
export class Contacts {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /** Contacts, pending requests, and accounts that were asked and have not answered. */
  list(): Promise<Contact[]> {
    return this.#core.store.read((tx) => contactRows(tx));
  }

  get(account: string): Promise<Contact> {
    return this.#core.store.read((tx) => contactRow(tx, account));
  }

  /**
   * An invite as text, for a link or a QR code. Whoever holds it may ask, as often as they like,
   * until it expires.
   * @param options.lifetime seconds; a week by default
   */
  async invite({
    lifetime = inviteLifetime,
  }: {
    readonly lifetime?: number;
  } = {}): Promise<string> {
    return makeInvite(this.#core, lifetime);
  }

  /**
   * Reads an invite of somebody else without using it.
   * @throws ClientError `verification_failed`
   */
  read(text: string): ContactInvite {
    return readInvite(this.#core, text);
  }

  /** Asks the account that made an invite for a contact. */
  async acceptInvite(
    text: string,
    options: Abortable & { readonly note?: string | undefined } = {},
  ): Promise<MessageRow> {
    const invite = readInvite(this.#core, text);
    const { note } = options;
    return await addContact(this.#core, invite.inviter, {
      invite,
      note,
      signal: signalOf(options),
    });
  }

  /** Asks a publicly discoverable account for a contact. */
  async add(
    account: string,
    options: Abortable & { readonly note?: string | undefined } = {},
  ): Promise<MessageRow> {
    return await addContact(this.#core, account, {
      note: options.note,
      signal: signalOf(options),
    });
  }

  /** Accepts a pending request. */
  async approve(
    account: string,
    options: Abortable & { readonly note?: string | undefined } = {},
  ): Promise<MessageRow> {
    const { note } = options;
    return await acceptRequest(this.#core, account, { note, signal: signalOf(options) });
  }

  /** Turns a pending request down. The other side is not told. */
  decline(account: string): Promise<void> {
    return declineRequest(this.#core, account);
  }

  /** Ends a relationship. The own devices are told with the next `sync`. */
  remove(account: string): Promise<void> {
    return removeContact(this.#core, account);
  }

  /** Gives a contact a local name. */
  rename(account: string, alias: string): Promise<void> {
    return renameContact(this.#core, account, alias);
  }
}
