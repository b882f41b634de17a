/** Applies received objects to contacts, inside the transaction of their record. */
import {
  type AccountContactSync,
  addGrantSignature,
  adoptRecord,
  type ContactConsent,
  type ContactGrant,
  type ContactRecord,
  currentDevices,
  type MessageEnvelope,
  ProtocolError,
  relationshipStep,
  selectGrant,
  verifyConsent,
  verifyGrant,
} from '@posthouse/protocol';
import { adoptState, knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import type { AccountEvent } from '../events.ts';
import type { StoreWriter } from '../store/index.ts';
import { enqueueTask } from '../sync/tasks.ts';
import { type ContactRow, contactRow, isBlocked, putContact } from './contact-rows.ts';
import { issuedGrant, nextUpdatedAt, withActiveRelationship } from './relationship-rules.ts';

/** Applies a consent of another account (03 §15). @throws ProtocolError if it is not valid */
export async function applyConsent(
  core: AccountCore,
  tx: StoreWriter,
  { consent, envelope }: { readonly consent: ContactConsent; readonly envelope: MessageEnvelope },
): Promise<AccountEvent[]> {
  const { network } = core;
  const now = unixSeconds(core.clock);
  const account = envelope.from;
  const row = await contactRow(tx, account);
  if (isBlocked(row)) return [];
  const known = await knownState(tx, account);
  verifyConsent(network, consent, { envelope, known, now });
  await adoptState(tx, consent.device_state, 0);
  const step = relationshipStep(row.relationship, 'consent');
  if (step.effects.includes('store-request')) {
    const note = consent.note === undefined ? {} : { note: consent.note };
    const request = { grant: consent.grant, ...note, receivedAt: now };
    await putContact(tx, { ...row, relationship: step.state, request });
    return [{ kind: 'contact-request', account, ...note }];
  }
  if (row.relationship.status === 'active') {
    await putContact(tx, withIncomingGrant(core, row, consent.grant, consent.device_state));
    return [];
  }
  await putContact(tx, withActiveRelationship(core, row, { incoming: consent.grant }));
  // The other devices read the same consent; the device that asked sends them the record.
  if (issuedGrant(row)?.signatures[core.device.deviceId] !== undefined) {
    await enqueueTask(tx, { kind: 'sync-contact', account });
  }
  return [{ kind: 'contact-changed', account, status: 'active' }];
}

/** Selects between the stored incoming grant of an active contact and a new one (03 §16.4). */
function withIncomingGrant(
  core: AccountCore,
  row: ContactRow,
  candidate: ContactGrant,
  state: ContactConsent['device_state'],
): ContactRow {
  if (row.record === undefined) return row;
  const { grant } = selectGrant(core.network, {
    scope: { grantor: row.account, grantee: core.account },
    saved: row.record.grant_from_contact,
    candidate,
    state,
    now: unixSeconds(core.clock),
  });
  if (grant === undefined) return row;
  return { ...row, record: { ...row.record, grant_from_contact: grant } };
}

/**
 * Applies a consent that another own device sent: this device waits for the same answer, or has it
 * already as a pending request. An old record never undoes a later decision.
 */
export async function applyOwnConsent(
  core: AccountCore,
  tx: StoreWriter,
  { consent, envelope }: { readonly consent: ContactConsent; readonly envelope: MessageEnvelope },
): Promise<AccountEvent[]> {
  const { network, account: self } = core;
  const account = envelope.to;
  const row = await contactRow(tx, account);
  const state = await knownState(tx, self);
  const now = unixSeconds(core.clock);
  if (row.relationship.status === 'active' || isBlocked(row) || state === undefined) return [];
  if (row.record !== undefined && row.record.updated_at >= envelope.created_at) return [];
  if (!currentDevices(network, state, now).has(envelope.from_device_id)) return [];
  try {
    verifyGrant(network, consent.grant, { state, now, grantor: self, grantee: account });
  } catch (error) {
    if (error instanceof ProtocolError) return [];
    throw error;
  }
  if (row.request !== undefined) {
    const grants = { incoming: row.request.grant, outgoing: consent.grant };
    await putContact(tx, withActiveRelationship(core, row, grants));
    return [{ kind: 'contact-changed', account, status: 'active' }];
  }
  const { state: relationship } = relationshipStep(row.relationship, 'user-adds');
  await putContact(tx, { ...row, relationship, offered: consent.grant });
  return [];
}

/**
 * Applies a grant that a contact renewed or signed with another device (03 §18.1). A grant of an
 * unknown device waits for the contact's device state.
 */
export async function applyGrant(
  core: AccountCore,
  tx: StoreWriter,
  { grant, from }: { readonly grant: ContactGrant; readonly from: string },
): Promise<void> {
  const row = await contactRow(tx, from);
  if (row.record?.status !== 'active') throw new ProtocolError('forbidden', 'not a contact');
  if (grant.grantor !== from || grant.grantee !== core.account) {
    throw new ProtocolError('bad_request', 'grant is not from the sender to this account');
  }
  await selectIncomingGrant(core, tx, { row, candidate: grant });
}

/**
 * Selects a received grant. While a device that signed it is not known, it is kept unverified, too: the
 * grant that is selected lacks that signature, and may have no other one soon.
 */
async function selectIncomingGrant(
  core: AccountCore,
  tx: StoreWriter,
  { row, candidate }: { readonly row: ContactRow; readonly candidate: ContactGrant },
): Promise<void> {
  const state = await knownState(tx, row.account);
  const selection =
    state === undefined || row.record === undefined
      ? undefined
      : selectGrant(core.network, {
          scope: { grantor: row.account, grantee: core.account },
          saved: row.record.grant_from_contact,
          candidate,
          state,
          now: unixSeconds(core.clock),
        });
  const { outcome = 'invalid', grant } = selection ?? {};
  const isSelected = outcome !== 'invalid' && row.record !== undefined && grant !== undefined;
  const isWhole =
    outcome === 'keep' ||
    (isSelected &&
      Object.keys(candidate.signatures).every((id) => Object.hasOwn(grant.signatures, id)));
  await putContact(tx, {
    ...row,
    ...(isSelected && { record: { ...row.record, grant_from_contact: grant } }),
    ...(!isWhole && { unverified: candidate }),
  });
  if (!isWhole) await enqueueTask(tx, { kind: 'refresh-state', account: row.account });
}

/** Selects an unverified grant again, with the device state read since. */
export async function retryUnverifiedGrant(
  core: AccountCore,
  tx: StoreWriter,
  account: string,
): Promise<void> {
  const { unverified, ...row } = await contactRow(tx, account);
  const state = await knownState(tx, account);
  if (unverified === undefined || state === undefined) return;
  await putContact(tx, withIncomingGrant(core, row, unverified, state));
}

/** Applies a batch of contact records of another own device (03 §17). */
export async function applyContactSync(
  core: AccountCore,
  tx: StoreWriter,
  sync: AccountContactSync,
): Promise<AccountEvent[]> {
  const events: AccountEvent[] = [];
  for (const record of sync.records ?? []) {
    const event = await applyRecord(core, tx, record);
    if (event !== undefined) events.push(event);
  }
  if (sync.request_snapshot === true) await enqueueTask(tx, { kind: 'send-snapshot' });
  return events;
}

async function applyRecord(
  core: AccountCore,
  tx: StoreWriter,
  received: ContactRecord,
): Promise<AccountEvent | undefined> {
  const { network, account: self } = core;
  const { account } = received;
  const row = await contactRow(tx, account);
  const state = await knownState(tx, self);
  const contactState = await knownState(tx, account);
  if (state === undefined) return undefined;
  const record = adoptRecord(network, {
    current: row.record,
    received,
    own: { account: self, state },
    contactState,
    now: unixSeconds(core.clock),
  });
  if (record === undefined) return undefined;
  const event =
    row.relationship.status === received.status && isBlocked(row) === isBlocked({ record })
      ? undefined
      : ({ kind: 'contact-changed', account, status: received.status } as const);
  if (received.status === 'deleted') {
    const request = !isBlocked({ record }) && row.request;
    const before = { ...row.relationship, pending: Boolean(request) };
    const { state: relationship } = relationshipStep(before, 'deletion-adopted');
    await putContact(tx, { account, relationship, record, ...(request && { request }) });
    return event;
  }
  const { state: relationship } = relationshipStep(row.relationship, 'activation-adopted');
  const adopted: ContactRow = {
    account,
    relationship,
    record: { ...record, ...outgoingOf(record, row) },
    ...(row.unverified !== undefined && { unverified: row.unverified }),
  };
  const signed = await withOwnSignature(core, tx, adopted, received);
  await putContact(tx, signed);
  if (received.grant_from_contact !== undefined) {
    await selectIncomingGrant(core, tx, { row: signed, candidate: received.grant_from_contact });
  }
  return event;
}

/** Returns the outgoing grant of the record, else the one offered before. */
function outgoingOf(record: ContactRecord, row: ContactRow) {
  const outgoing = record.grant_to_contact ?? row.offered;
  return outgoing === undefined ? {} : { grant_to_contact: outgoing };
}

/**
 * Adds this device's signature to the outgoing grant if it is missing. If the grant has more
 * signatures than the received record, a later record is enqueued (03 §17.3, §18.2).
 */
async function withOwnSignature(
  core: AccountCore,
  tx: StoreWriter,
  row: ContactRow,
  received: ContactRecord,
): Promise<ContactRow> {
  const outgoing = row.record?.grant_to_contact;
  if (row.record === undefined || outgoing === undefined) return row;
  const isSigned = Object.hasOwn(outgoing.signatures, core.device.deviceId);
  const grant = isSigned ? outgoing : addGrantSignature(core.network, outgoing, core.device);
  const before = Object.keys(received.grant_to_contact?.signatures ?? {}).length;
  if (Object.keys(grant.signatures).length <= before) return row;
  await enqueueTask(tx, { kind: 'sync-contact', account: row.account });
  if (!isSigned) await enqueueTask(tx, { kind: 'update-grant', account: row.account });
  const record = { ...row.record, grant_to_contact: grant };
  return { ...row, record: { ...record, updated_at: nextUpdatedAt(core, row) } };
}
