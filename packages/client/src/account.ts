import {
  type AccountProfile,
  type AccountSigner,
  type ContactInvite,
  type ContentReference,
  checkDirectMessage,
  type DirectMessage,
  type JsonObject,
  type ProfileFacts,
  ProtocolError,
} from '@posthouse/protocol';
import {
  approveRequest,
  type DeviceInfo,
  listDevices,
  removeDevice,
  renewThisDevice,
} from './accounts/devices.ts';
import { homeRelay, isWrongHome, refreshHome } from './accounts/home.ts';
import { checkMove, moveHome } from './accounts/move.ts';
import type { DeviceApproval, DeviceRequest } from './accounts/pairing.ts';
import { knownProfile, publishProfile, resolveProfile } from './accounts/profiles.ts';
import { timelines } from './accounts/records.ts';
import { resolveOwnState } from './accounts/states.ts';
import {
  acceptRequest,
  addContact,
  declineRequest,
  makeInvite,
  readInvite,
  removeContact,
  renameContact,
} from './contacts/actions.ts';
import { runDuties } from './contacts/duties.ts';
import { type ContactRow, contactRow, contactRows } from './contacts/rows.ts';
import type { AccountCore } from './core.ts';
import { duties } from './duties.ts';
import { ClientError, isClientError } from './errors.ts';
import type { AccountEvent } from './events.ts';
import { type FollowOptions, follow } from './live.ts';
import { flush, send } from './messages/outbox.ts';
import { listMessages, type MessageRow, messageRow, outbox } from './messages/rows.ts';
import { readTimeline, timelinePosition } from './messages/timeline.ts';

/** Ends an operation early. Every operation takes one; without it, it runs to its own end. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/** For operations the account key signs; the stored one is taken where none is given. */
export interface WithAccountKey extends Abortable {
  readonly accountKey?: AccountSigner | undefined;
}

const never = new AbortController().signal;
const signalOf = ({ signal = never }: Abortable) => signal;

/** Seconds an invite is good for by default: a week. */
const inviteLifetime = 604_800;

/** One contact, or somebody who could become one. */
export type Contact = ContactRow;

/** A message to send: text, attachments, or both. */
export interface Draft {
  readonly text?: string;
  /** Media type of the text; plain text by default. */
  readonly contentType?: string;
  readonly attachments?: readonly ContentReference[];
  readonly replyTo?: { readonly from: string; readonly message_id: string };
}

export interface AccountStatus {
  readonly account: string;
  readonly deviceId: string;
  readonly homeRelay: string;
  /** Processed position on the home relay's timeline; -1 at its beginning. */
  readonly position: number;
  /** Whether records were lost to retention before this device read them. */
  readonly gap: boolean;
  /** Messages whose fate is not known yet. */
  readonly outbox: number;
  /** Messages this device still has to send by itself. */
  readonly owed: number;
}

/**
 * An account, seen from one of its devices. Everything it reads from a relay is verified before it
 * is used; everything it must not forget is in the store before it leaves.
 *
 * @example
 * const account = await client.account();
 * await account.sync();
 * await account.messages.send(peer, { text: 'hello' });
 */
export class Account {
  readonly id: string;
  readonly deviceId: string;
  /** Compressed account key, base64url: what a new device of the account is told. */
  readonly publicKey: string;
  readonly devices: Devices;
  readonly profiles: Profiles;
  readonly contacts: Contacts;
  readonly messages: Messages;
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
    this.id = core.account;
    this.deviceId = core.device.deviceId;
    this.publicKey = core.publicKey;
    this.devices = new Devices(core);
    this.profiles = new Profiles(core);
    this.contacts = new Contacts(core);
    this.messages = new Messages(core);
  }

  /**
   * Catches up once: own device state, timeline, what waits to be sent, what is owed.
   *
   * @param options.formerRelays also reads the timelines of relays the account has left, as far as
   *   they still answer
   * @returns what happened
   * @throws ClientError; what was applied before stays
   */
  async sync(
    options: Abortable & { readonly formerRelays?: boolean } = {},
  ): Promise<AccountEvent[]> {
    const signal = signalOf(options);
    const events: AccountEvent[] = [];
    const collect = async () => {
      for await (const batch of this.#catchUp(signal)) events.push(...batch);
    };
    try {
      await collect();
    } catch (error) {
      if (!isWrongHome(error)) throw error;
      await refreshHome(this.#core, this.id, signal);
      await collect();
    }
    if (options.formerRelays) {
      for await (const batch of this.#readFormerRelays(signal)) events.push(...batch);
    }
    return events;
  }

  /**
   * Gives what happens as it happens, catching up first, until the signal aborts. Connections that
   * break are rebuilt. What was given is in the store already; leaving the loop loses nothing.
   *
   * @throws ClientError that waiting does not heal
   * @example
   * for await (const event of account.follow({ signal })) {
   *   if (event.kind === 'message') show(event.message);
   * }
   */
  follow(options: FollowOptions): AsyncGenerator<AccountEvent> {
    const followed = {
      core: this.#core,
      catchUp: (signal: AbortSignal) => this.#catchUp(signal),
      refreshHome: async (signal: AbortSignal) => {
        await refreshHome(this.#core, this.id, signal);
      },
    };
    return follow(followed, options);
  }

  /**
   * Makes another relay the home; the old one is read once more first, where it still answers.
   * The profile is published anew there.
   */
  async move(relayId: string, options: WithAccountKey = {}): Promise<void> {
    const core = this.#core;
    const signal = signalOf(options);
    checkMove(await homeRelay(core, this.id), relayId);
    const signer = await core.accountKey(options.accountKey);
    await this.sync(options).catch((error: unknown) => {
      if (!isClientError(error) || signal.aborted) throw error;
    });
    const profile = await knownProfile(core, this.id);
    await moveHome(core, { relayId, signer, signal });
    if (profile !== undefined) await publishProfile(core, profile, signal);
  }

  async status(): Promise<AccountStatus> {
    const core = this.#core;
    const relayId = await homeRelay(core, this.id);
    return await core.store.read(async (tx) => ({
      account: this.id,
      deviceId: this.deviceId,
      homeRelay: relayId,
      position: await timelinePosition(tx, relayId),
      gap: (await timelines.get(tx, relayId))?.gap ?? false,
      outbox: (await outbox.list(tx)).length,
      owed: (await duties.list(tx)).length,
    }));
  }

  async *#catchUp(signal: AbortSignal): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const home = await core.home();
    await resolveOwnState(core, home, { account: this.id, signal });
    yield* readTimeline(core, home.relayId, signal);
    await flush(core, signal);
    await runDuties(core, signal);
  }

  /** A dead relay keeps what it has; that is no reason to fail. */
  async *#readFormerRelays(signal: AbortSignal): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const home = await homeRelay(core, this.id);
    const known = await core.store.read((tx) => timelines.list(tx));
    for (const { key: relayId } of known) {
      if (relayId === home) continue;
      try {
        yield* readTimeline(core, relayId, signal);
      } catch (error) {
        if (!isClientError(error) || isClientError(error, 'relay_misbehaviour')) throw error;
        signal.throwIfAborted();
      }
    }
  }
}

/** The account's devices. */
class Devices {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  list(options: Abortable = {}): Promise<DeviceInfo[]> {
    return listDevices(this.#core, signalOf(options));
  }

  /**
   * Approves a device's request, see `Client.requestDevice`. Compare the fingerprint first: whoever
   * is approved reads every message from then on.
   */
  async approve(request: DeviceRequest, options: WithAccountKey = {}): Promise<DeviceApproval> {
    const signer = await this.#core.accountKey(options.accountKey);
    return await approveRequest(this.#core, request, { signer, signal: signalOf(options) });
  }

  /** Gives this device a new period. */
  async renew(options: WithAccountKey = {}): Promise<void> {
    const signer = await this.#core.accountKey(options.accountKey);
    await renewThisDevice(this.#core, { signer, signal: signalOf(options) });
  }

  /**
   * Removes a device, after every contact got the signature of one that stays.
   * @param options.force removes it at once, whatever becomes of contacts
   */
  async remove(
    deviceId: string,
    options: WithAccountKey & { readonly force?: boolean } = {},
  ): Promise<void> {
    const { force = false } = options;
    const signer = await this.#core.accountKey(options.accountKey);
    await removeDevice(this.#core, deviceId, { signer, force, signal: signalOf(options) });
  }
}

/** Profiles, the own one and others'. */
class Profiles {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /** Publishes the own profile, whole: what is left out is not in it any more. */
  publish(
    facts: Omit<ProfileFacts, 'account' | 'updated_at'>,
    options: Abortable = {},
  ): Promise<AccountProfile> {
    return publishProfile(this.#core, facts, signalOf(options));
  }

  /** An account's profile, verified; `undefined` where it has none. */
  resolve(account: string, options: Abortable = {}): Promise<AccountProfile | undefined> {
    return resolveProfile(this.#core, account, signalOf(options));
  }
}

/** Other accounts. */
class Contacts {
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

/** Messages, sent and received. */
class Messages {
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
    return await send(core, {
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
    const { record } = await this.#core.store.read((tx) => contactRow(tx, account));
    if (record?.status !== 'active' || record.grant_from_contact === undefined) {
      throw new ClientError('not_a_contact', `${account} is not a contact`);
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
