/** Contacts as this device keeps them (03 §15.2, §17). */
import {
  type ContactGrant,
  type ContactRecord,
  isGrantExpired,
  noRelationship,
  type Relationship,
  validGrantDevices,
} from '@posthouse/protocol';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError } from '../errors.ts';
import { Collection, type StoreReader, type StoreWriter } from '../store/index.ts';

/** A consent that waits for the person to decide. */
interface ContactRequest {
  readonly grant: ContactGrant;
  readonly note?: string;
  /** Unix seconds. */
  readonly receivedAt: number;
}

/** Everything about one other account, by its ID. */
export interface ContactRow {
  readonly account: string;
  readonly relationship: Relationship;
  /** Present once a relationship existed: `active`, or `deleted` as a tombstone. */
  readonly record?: ContactRecord;
  readonly request?: ContactRequest;
  /** The own grant that went out with a consent nobody answered yet. */
  readonly offered?: ContactGrant;
  /** A local name given before there was a record to hold it. */
  readonly alias?: string;
  /** Received, but not verified for want of the contact's device state; never used. */
  readonly unverified?: ContactGrant;
}
const contacts = new Collection<ContactRow>('contacts');

export async function contactRow(tx: StoreReader, account: string): Promise<ContactRow> {
  return (await contacts.get(tx, account)) ?? { account, relationship: noRelationship };
}

export async function contactRows(tx: StoreReader): Promise<ContactRow[]> {
  return (await contacts.list(tx)).map(({ value }) => value);
}

export async function putContact(tx: StoreWriter, row: ContactRow): Promise<void> {
  await contacts.put(tx, row.account, row);
}

/**
 * `updated_at` of the next record: later than the one at hand, and the clock's where that is later
 * (03 §17.3).
 *
 * @throws ClientError `counter_exhausted`
 */
export function nextUpdatedAt(core: AccountCore, row: ContactRow): number {
  const next = Math.max((row.record?.updated_at ?? -1) + 1, unixSeconds(core.clock));
  if (!Number.isSafeInteger(next)) throw new ClientError('counter_exhausted', 'updated_at');
  return next;
}

/** The local name of an account, if it has one. */
export function aliasOf({ alias, record }: ContactRow): string | undefined {
  return alias ?? record?.alias;
}

/** The grant this account issued to a contact and still keeps (04 §7.2). */
export function issuedGrant(row: ContactRow): ContactGrant | undefined {
  return row.record?.grant_to_contact ?? row.offered;
}

/**
 * Whether this account still lets another one write to it: the grant it issued is kept, unexpired,
 * and carried by a device of the own account that is valid now.
 */
export async function isAuthority(
  core: AccountCore,
  tx: StoreReader,
  row: ContactRow,
): Promise<boolean> {
  const grant = issuedGrant(row);
  const state = await knownState(tx, core.account);
  const now = unixSeconds(core.clock);
  if (grant === undefined || state === undefined || isGrantExpired(grant, now)) return false;
  return validGrantDevices(core.network, grant, { state, now }).length > 0;
}

/** The row as an active relationship, with a new record of the grants of both directions. */
export function activated(
  core: AccountCore,
  row: ContactRow,
  grants: { readonly incoming: ContactGrant | undefined; readonly outgoing?: ContactGrant },
): ContactRow {
  const incoming = grants.incoming ?? row.record?.grant_from_contact;
  const outgoing = grants.outgoing ?? issuedGrant(row);
  const alias = aliasOf(row);
  return {
    account: row.account,
    relationship: { status: 'active', pending: false, awaiting: false },
    record: {
      account: row.account,
      ...(alias !== undefined && { alias }),
      status: 'active',
      ...(incoming !== undefined && { grant_from_contact: incoming }),
      ...(outgoing !== undefined && { grant_to_contact: outgoing }),
      updated_at: nextUpdatedAt(core, row),
    },
    ...(row.unverified !== undefined && { unverified: row.unverified }),
  };
}
