/** Contact records between the devices of one account (03 §17). */
import { badRequest } from '../errors.ts';
import { type AccountDeviceState, checkAccountId, type Network } from '../identity/index.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  checkPart,
  checkText,
  memberPath,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { ContactGrant, checkGrant } from './grant.ts';
import { selectGrant } from './grant-selection.ts';

/** One contact as a device of the account sees it. `deleted` is a tombstone and has no grants. */
export const ContactRecord = Type.Object({
  account: AccountId,
  alias: Type.Optional(Type.String()),
  status: Type.Union([Type.Literal('active'), Type.Literal('deleted')]),
  /** The contact's grant to this account: used to reach the contact. */
  grant_from_contact: Type.Optional(ContactGrant),
  /** This account's grant to the contact. */
  grant_to_contact: Type.Optional(ContactGrant),
  /** Changes with the contact's state and not with forwarding. */
  updated_at: UnixSeconds,
});
export type ContactRecord = Static<typeof ContactRecord>;

/** A batch of records, a request for the receiver's snapshot, or both. */
export const AccountContactSync = Type.Object({
  $type: TypeName,
  records: Type.Optional(Type.Array(ContactRecord)),
  request_snapshot: Type.Optional(Type.Boolean()),
});
export type AccountContactSync = Static<typeof AccountContactSync>;

/**
 * Checks a sync object, each of its records and their grants (formats only), for the account it was
 * delivered within.
 *
 * @param own.account both ends of the envelope
 * @throws ProtocolError `bad_request`
 * @example
 * checkContactSync(network, value, { account });
 * for (const record of value.records ?? []) console.log(record.account);
 */
export function checkContactSync(
  network: Network,
  value: unknown,
  own: { readonly account: string },
): asserts value is AccountContactSync {
  const schema = { type: 'account.contacts.sync', schema: AccountContactSync };
  checkObject(network, schema, value);
  checkNoNull(value);
  const seen = new Set<string>();
  for (const [index, record] of (value.records ?? []).entries()) {
    const path = `records.${index}`;
    checkContactRecord(network, record, { ...own, path });
    if (seen.has(record.account)) throw badRequest(path, 'repeats an account');
    seen.add(record.account);
  }
}

/**
 * Checks a record that has the right shape: alias, the contact's account, and grants between the
 * contact and the own account in their directions.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkContactRecord(network, contactRecord, { account });
 */
export function checkContactRecord(
  network: Network,
  record: ContactRecord,
  own: { readonly account: string; readonly path?: string },
): void {
  const { account, path = '' } = own;
  const { grant_from_contact: incoming, grant_to_contact: outgoing } = record;
  checkPart(record, path);
  checkAccountId(network, record.account, memberPath(path, 'account'));
  if (record.account === account) throw badRequest(memberPath(path, 'account'), 'own account');
  if (record.alias !== undefined) {
    const rule = { maxBytes: limits.nicknameBytes, allowEmpty: true };
    checkText(record.alias, rule, memberPath(path, 'alias'));
  }
  if (record.status === 'deleted' && (incoming !== undefined || outgoing !== undefined)) {
    throw badRequest(path, 'a deleted contact has no grants');
  }
  const between = (grant: ContactGrant, name: string, grantor: string, grantee: string) => {
    const at = memberPath(path, name);
    checkGrant(network, grant, at);
    if (grant.grantor !== grantor || grant.grantee !== grantee) {
      throw badRequest(at, 'between other accounts');
    }
  };
  if (incoming !== undefined) between(incoming, 'grant_from_contact', record.account, account);
  if (outgoing !== undefined) between(outgoing, 'grant_to_contact', account, record.account);
}

/**
 * Returns whether a valid record wins against the present one: the later `updated_at` wins, and of
 * equals the record received later (03 §17.3). Tombstones are compared like any other record.
 */
export function winsSelection(
  received: Pick<ContactRecord, 'updated_at'>,
  current: Pick<ContactRecord, 'updated_at'> | undefined,
): boolean {
  return current === undefined || received.updated_at >= current.updated_at;
}

export interface AdoptRecordInput {
  /** The contact as this device has it. */
  readonly current: ContactRecord | undefined;
  /** Checked with `checkContactRecord`. */
  readonly received: ContactRecord;
  readonly own: { readonly account: string; readonly state: AccountDeviceState };
  /** The contact's verified state; without it the incoming grant stays as it is. */
  readonly contactState?: AccountDeviceState | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Merges a received record into a contact: `undefined` if the record loses selection and changes
 * nothing. Otherwise its fields replace the contact's; each direction's grant is selected on its
 * own against the local one, and a grant that the record lacks stays. A tombstone clears both.
 *
 * What this device adds (a merged grant, its own signature) travels onward only in a new record
 * with a later `updated_at`.
 *
 * @example
 * const own = { account, state };
 * const input = { current: undefined, received: contactRecord, own, now };
 * const adopted = adoptRecord(network, input);
 */
export function adoptRecord(network: Network, input: AdoptRecordInput): ContactRecord | undefined {
  const { current, received, own, contactState, now } = input;
  if (!winsSelection(received, current)) return undefined;
  const { grant_from_contact: _incoming, grant_to_contact: _outgoing, ...rest } = received;
  if (received.status === 'deleted') return rest;
  const select = (
    name: 'grant_from_contact' | 'grant_to_contact',
    state: AccountDeviceState | undefined,
    scope: { grantor: string; grantee: string },
  ) => {
    const saved = current?.[name];
    const candidate = received[name];
    if (candidate === undefined || state === undefined) return saved;
    return selectGrant(network, { scope, saved, candidate, state, now }).grant;
  };
  const peer = received.account;
  const incoming = select('grant_from_contact', contactState, {
    grantor: peer,
    grantee: own.account,
  });
  const outgoing = select('grant_to_contact', own.state, { grantor: own.account, grantee: peer });
  return {
    ...rest,
    ...(incoming !== undefined && { grant_from_contact: incoming }),
    ...(outgoing !== undefined && { grant_to_contact: outgoing }),
  };
}
