import type { ContactInvite } from '@posthouse/protocol';
import { type Contact, toContact } from '../contacts/contact.ts';
import { contactRow, contactRows } from '../contacts/contact-rows.ts';
import {
  addContact,
  approveRequest,
  type IssuedContactInvite,
  makeInvite,
  readInvite,
  rejectRequest,
  removeContact,
  renameContact,
  setBlocked,
} from '../contacts/manage-contacts.ts';
import type { AccountCore } from '../core.ts';
import { type Message, toMessage } from '../messages/message.ts';
import { type Abortable, signalOf } from './options.ts';

/** Options of requests to another account. */
export interface ContactRequestOptions extends Abortable {
  /** Text that the other person reads with the request. */
  readonly note?: string | undefined;
}

/** Seconds an invite is valid by default: a week. */
const inviteLifetime = 604_800;

/**
 * Manages the account's relationships with other accounts.
 *
 * @example
 * const { text } = await account.contacts.invite(); // for a link or a QR code
 * for (const event of await account.sync()) {
 *   if (event.kind === 'contact-request') await account.contacts.approve(event.account);
 * }
 */
export class Contacts {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Lists contacts, accounts that ask to become one, accounts that were asked and have not answered,
   * removed contacts, and blocked accounts.
   *
   * @example
   * for (const { account: peer, name, status } of await account.contacts.list()) {
   *   if (status === 'active') console.log(name ?? peer);
   * }
   */
  async list(): Promise<Contact[]> {
    return await this.#core.store.read(async (tx) => {
      const rows = await contactRows(tx);
      const contacts = await Promise.all(rows.map((row) => toContact(tx, row)));
      return contacts.filter(({ status }) => status !== 'none');
    });
  }

  /**
   * Gets what is stored about one account; without a relationship the status is `none`.
   *
   * @example
   * const { status, name } = await account.contacts.get(peer);
   */
  get(peer: string): Promise<Contact> {
    return this.#core.store.read(async (tx) => await toContact(tx, await contactRow(tx, peer)));
  }

  /**
   * Makes an invite. Every holder of it may send requests until it expires.
   *
   * @param options.lifetime seconds; a week by default
   * @returns the document of chapter 03, which every client of the network understands, and this
   *   client's `text` of it, for a link or a QR code
   * @example
   * const { text, invite } = await account.contacts.invite({ lifetime: 3_600 });
   * console.log(text, invite.expires_at);
   */
  async invite(options: { readonly lifetime?: number } = {}): Promise<IssuedContactInvite> {
    const { lifetime = inviteLifetime } = options;
    return makeInvite(this.#core, { lifetime });
  }

  /**
   * Reads another account's invite without using it.
   *
   * @param invite the text, or the document of chapter 03 as an object or as JSON
   * @throws ClientError `verification_failed`
   * @example
   * const { inviter, expires_at } = account.contacts.preview(invite);
   */
  preview(invite: string | ContactInvite): ContactInvite {
    return readInvite(this.#core, invite);
  }

  /**
   * Sends a contact request to the account that made an invite.
   *
   * @param invite the text, or the document of chapter 03 as an object or as JSON
   * @returns the message that carries the request
   * @throws ClientError `verification_failed`, `invalid_input`
   * @example
   * await account.contacts.join(invite, { note: 'Bob, from the fair' });
   */
  async join(
    invite: string | ContactInvite,
    options: ContactRequestOptions = {},
  ): Promise<Message> {
    const checked = readInvite(this.#core, invite);
    const { note } = options;
    const request = { invite: checked, note, signal: signalOf(options) };
    return toMessage(await addContact(this.#core, checked.inviter, request));
  }

  /**
   * Sends a contact request to a publicly discoverable account.
   *
   * @returns the message that carries the request
   * @throws ClientError `invalid_input`; RelayRefused if the account is not publicly discoverable
   * @example
   * await account.contacts.request(peer);
   */
  async request(peer: string, options: ContactRequestOptions = {}): Promise<Message> {
    const { note } = options;
    return toMessage(await addContact(this.#core, peer, { note, signal: signalOf(options) }));
  }

  /**
   * Approves a pending request; both accounts are contacts then.
   *
   * @returns the message that carries the consent
   * @throws ClientError `invalid_input` if no request is pending
   * @example
   * for (const { account: peer, status } of await account.contacts.list()) {
   *   if (status === 'asks') await account.contacts.approve(peer);
   * }
   */
  async approve(peer: string, options: ContactRequestOptions = {}): Promise<Message> {
    const { note } = options;
    return toMessage(await approveRequest(this.#core, peer, { note, signal: signalOf(options) }));
  }

  /**
   * Rejects a pending request. The other account is not notified.
   *
   * @throws ClientError `invalid_input` if no request is pending
   * @example
   * for (const { account: peer, status } of await account.contacts.list()) {
   *   if (status === 'asks') await account.contacts.reject(peer);
   * }
   */
  reject(peer: string): Promise<void> {
    return rejectRequest(this.#core, peer);
  }

  /**
   * Ends a relationship. The next `sync` sends the change to the account's other devices.
   *
   * @throws ClientError `not_a_contact`
   * @example
   * await account.contacts.remove(peer);
   */
  remove(peer: string): Promise<void> {
    return removeContact(this.#core, peer);
  }

  /**
   * Blocks an account, a contact or not: its requests are dropped and its messages are refused, and the
   * relationship ends. The account is not notified. The next `sync` sends this to the account's other devices.
   * What it posts in groups is still delivered: apps leave out what accounts of the status `blocked` wrote.
   *
   * @throws ClientError `verification_failed`, `invalid_input`
   * @example
   * await account.contacts.block(peer);
   */
  block(peer: string): Promise<void> {
    return setBlocked(this.#core, peer, true);
  }

  /**
   * Ends the block of an account, which can send requests again; it is no contact. What it sent meanwhile stays lost.
   *
   * @throws ClientError `verification_failed`, `invalid_input`
   * @example
   * await account.contacts.unblock(peer);
   */
  unblock(peer: string): Promise<void> {
    return setBlocked(this.#core, peer, false);
  }

  /**
   * Sets the local name of a contact or of a pending one.
   *
   * @throws ClientError `not_a_contact`, `verification_failed`
   * @example
   * await account.contacts.rename(peer, 'Bob');
   */
  rename(peer: string, alias: string): Promise<void> {
    return renameContact(this.#core, peer, alias);
  }
}
