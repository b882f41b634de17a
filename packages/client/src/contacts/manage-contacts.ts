/** A person's actions on contacts (03 §13, §15.2). */
import {
  type Authorization,
  type ContactConsent,
  type ContactGrant,
  type ContactInvite,
  checkAccountId,
  checkConsent,
  checkContactRecord,
  checkInvite,
  checkInviteUse,
  decodeInvite,
  encodeInvite,
  ProtocolError,
  relationshipStep,
  signGrant,
  signInvite,
} from '@posthouse/protocol';
import { JsonError, type JsonObject, parseJson } from '@posthouse/protocol/json';
import {
  knownState,
  requireCurrentDevices,
  resolveOwnState,
  resolveState,
} from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError } from '../errors.ts';
import type { MessageRow } from '../messages/message-rows.ts';
import { sendMessage } from '../messages/send-message.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { enqueueTask } from '../sync/tasks.ts';
import {
  aliasOf,
  blockedMember,
  type ContactRow,
  contactRow,
  isBlocked,
  putContact,
} from './contact-rows.ts';
import { issuedGrant, nextUpdatedAt, withActiveRelationship } from './relationship-rules.ts';

/** An invite that was made. */
export interface IssuedContactInvite {
  /** For a link or a QR code; only clients of this kind read it. */
  readonly text: string;
  /** The document that every client of the network reads (03 §14). */
  readonly invite: ContactInvite;
}

/** Makes an invite, signed by this device (03 §14). */
export function makeInvite(
  { network, device, clock }: AccountCore,
  { lifetime }: { readonly lifetime: number },
): IssuedContactInvite {
  const invite = signInvite(network, device, { expires_at: unixSeconds(clock) + lifetime });
  return { text: encodeInvite(network, invite), invite };
}

/**
 * Reads an invite in either format and makes all checks that need no device state of the inviter.
 * @throws ClientError `verification_failed`
 */
export function readInvite(core: AccountCore, given: string | ContactInvite): ContactInvite {
  return verifyInput('invite', () => {
    const invite = parseInvite(core, given);
    checkInviteUse(invite, { now: unixSeconds(core.clock) });
    if (invite.inviter === core.account) throw new ProtocolError('bad_request', 'an own invite');
    return invite;
  });
}

function parseInvite({ network }: AccountCore, given: string | ContactInvite): ContactInvite {
  const text = typeof given === 'string' ? given.trim() : undefined;
  if (text?.startsWith('{') === false) return decodeInvite(network, text);
  const invite = text === undefined ? given : parseJson(text);
  checkInvite(network, invite, 'invite');
  return invite;
}

/** Reads a contact. @throws ClientError `invalid_input` if it is blocked */
async function unblockedContact(tx: StoreReader, account: string): Promise<ContactRow> {
  const row = await contactRow(tx, account);
  if (!isBlocked(row)) return row;
  throw new ClientError('invalid_input', `${account} is blocked: unblock it first`);
}

/**
 * Sends a contact request: the own consent with an invite as authorization, or without one if the
 * account is publicly discoverable (03 §13.2). To a contact it is sent again with an invite only, so that
 * one that set itself up anew gets a grant.
 *
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function addContact(
  core: AccountCore,
  account: string,
  options: {
    readonly invite?: ContactInvite | undefined;
    readonly note?: string | undefined;
    readonly signal: AbortSignal;
  },
): Promise<MessageRow> {
  const { invite, note, signal } = options;
  requireOther(core, account);
  const row = await core.store.read((tx) => unblockedContact(tx, account));
  const isActive = row.relationship.status === 'active';
  // With an invite the person consents again: the contact may have lost its devices and all grants.
  if (isActive && invite === undefined) {
    throw new ClientError('invalid_input', `${account} is a contact already: nothing to do`);
  }
  // A pending request of that account is answered with its grant; nothing else is needed.
  if (row.request !== undefined) return await approveRequest(core, account, { note, signal });
  requireCurrentDevices(
    core,
    await resolveState(core, account, { ...(invite && { authorization: invite }), signal }),
  );
  const consent = await makeConsent(core, row, { note, signal });
  const { state: relationship } = relationshipStep(row.relationship, 'user-adds');
  const after = isActive ? row : { ...row, relationship, offered: consent.grant };
  return await sendConsent(core, { consent, before: row, after, authorization: invite, signal });
}

/**
 * Approves a pending request: stores its grant, sends the own consent, and makes the relationship
 * active.
 *
 * @throws ClientError `invalid_input` if no request is pending
 */
export async function approveRequest(
  core: AccountCore,
  account: string,
  options: { readonly note?: string | undefined; readonly signal: AbortSignal },
): Promise<MessageRow> {
  const { note, signal } = options;
  const row = await core.store.read((tx) => contactRow(tx, account));
  if (row.request === undefined) throw noRequest(account);
  const { grant } = row.request;
  // If no device can read it, neither a grant nor a consent is made (03 §13.2).
  const state = await core.store.read((tx) => knownState(tx, account));
  requireCurrentDevices(
    core,
    state ?? (await resolveState(core, account, { authorization: grant, signal })),
  );
  const consent = await makeConsent(core, row, { note, signal });
  const after = withActiveRelationship(core, row, { incoming: grant, outgoing: consent.grant });
  return await sendConsent(core, { consent, before: row, after, authorization: grant, signal });
}

/** Makes a consent with the own device state and a grant. A grant issued before is reused. */
async function makeConsent(
  core: AccountCore,
  row: ContactRow,
  { note, signal }: { readonly note: string | undefined; readonly signal: AbortSignal },
): Promise<ContactConsent> {
  const { network, account } = core;
  const state = await resolveOwnState(core, await core.home(), { account, signal });
  const issued = issuedGrant(row);
  const grant: ContactGrant =
    issued?.signatures[core.device.deviceId] === undefined
      ? signGrant(network, core.device, { grantee: row.account })
      : issued;
  const consent = {
    $type: network.type('contact.consent'),
    device_state: state,
    grant,
    ...(note !== undefined && { note }),
  };
  verifyInput('note', () => checkConsent(network, consent));
  return consent;
}

async function sendConsent(
  core: AccountCore,
  consent: {
    readonly consent: ContactConsent;
    readonly before: ContactRow;
    readonly after: ContactRow;
    readonly authorization: Authorization | undefined;
    readonly signal: AbortSignal;
  },
): Promise<MessageRow> {
  const { before, after, authorization, signal } = consent;
  return await sendMessage(core, {
    to: before.account,
    content: consent.consent,
    authorization,
    purpose: { kind: 'consent', before, after },
    signal,
    inTransaction: async (tx) => {
      // It may have been blocked meanwhile.
      await unblockedContact(tx, after.account);
      await putContact(tx, after);
      if (after.relationship.status === 'active') {
        await enqueueTask(tx, { kind: 'sync-contact', account: after.account });
      }
    },
  });
}

/** Rejects a pending request. @throws ClientError `invalid_input` if no request is pending */
export async function rejectRequest(core: AccountCore, account: string): Promise<void> {
  await core.store.write(async (tx) => {
    const { request, ...row } = await contactRow(tx, account);
    if (request === undefined) throw noRequest(account);
    const { state: relationship } = relationshipStep(row.relationship, 'user-declines');
    await putContact(tx, { ...row, relationship });
  });
}

/**
 * Ends a relationship: deletes the grants of both directions, stores a tombstone, and enqueues the
 * record for the own devices.
 *
 * @throws ClientError `not_a_contact`
 */
export async function removeContact(core: AccountCore, account: string): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await contactRow(tx, account);
    if (row.relationship.status !== 'active') {
      throw new ClientError(
        'not_a_contact',
        `${account} is not a contact: list the contacts for their IDs`,
      );
    }
    await putTombstone(core, tx, row);
  });
}

/**
 * Blocks an account, or ends that. Both end the relationship, a request and waiting for an answer.
 *
 * @throws ClientError `invalid_input`, `verification_failed`
 */
export async function setBlocked(
  core: AccountCore,
  account: string,
  shouldBlock: boolean,
): Promise<void> {
  requireOther(core, account);
  await core.store.write(async (tx) => {
    const row = await contactRow(tx, account);
    if (isBlocked(row) === shouldBlock) return;
    await putTombstone(core, tx, row, shouldBlock ? blockedMember : {});
  });
}

/** Leaves of a contact what keeps older records out (03 §17.3), and enqueues it for the own devices. */
async function putTombstone(
  core: AccountCore,
  tx: StoreWriter,
  row: ContactRow,
  others: JsonObject = {},
): Promise<void> {
  const { account } = row;
  const alias = aliasOf(row);
  await putContact(tx, {
    account,
    relationship: { status: 'deleted', pending: false, awaiting: false },
    record: {
      ...others,
      account,
      ...(alias !== undefined && { alias }),
      status: 'deleted',
      updated_at: nextUpdatedAt(core, row),
    },
  });
  await enqueueTask(tx, { kind: 'sync-contact', account });
}

function requireOther({ network, account: self }: AccountCore, account: string): void {
  verifyInput('account', () => checkAccountId(network, account));
  if (account === self)
    throw new ClientError('invalid_input', 'that is the own account: pass another one');
}

/**
 * Sets the local name of a contact, or of an account with a pending request of either side.
 * @throws ClientError `not_a_contact`, `verification_failed`
 */
export async function renameContact(
  core: AccountCore,
  account: string,
  alias: string,
): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await contactRow(tx, account);
    const { status, pending, awaiting } = row.relationship;
    if (status !== 'active' && !pending && !awaiting) {
      throw new ClientError(
        'not_a_contact',
        `${account} is not a contact: list the contacts for their IDs`,
      );
    }
    const updated_at = nextUpdatedAt(core, row);
    const record = { ...(row.record ?? { account, status: 'active' as const }), alias, updated_at };
    verifyInput('alias', () => checkContactRecord(core.network, record, core));
    if (status !== 'active') return await putContact(tx, { ...row, alias });
    await putContact(tx, { ...row, record });
    await enqueueTask(tx, { kind: 'sync-contact', account });
  });
}

function noRequest(account: string): ClientError {
  return new ClientError(
    'invalid_input',
    `no request of ${account} is pending: synchronize, then list the contacts`,
  );
}

/** Runs a check of input from a person; its error becomes `verification_failed`. */
function verifyInput<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (!(cause instanceof ProtocolError || cause instanceof JsonError)) throw cause;
    throw new ClientError('verification_failed', `${what}: ${cause.message}`, { cause });
  }
}
