/** Stored rows of contacts (03 §15.2, §17). */
import {
  type ContactGrant,
  type ContactRecord,
  noRelationship,
  type Relationship,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';

/** A consent that waits for the person's decision. */
interface ContactRequest {
  readonly grant: ContactGrant;
  readonly note?: string;
  /** Unix seconds. */
  readonly receivedAt: number;
}

/** Everything stored about one other account, by its ID. */
export interface ContactRow {
  readonly account: string;
  readonly relationship: Relationship;
  /** Present once a relationship existed: `active`, or `deleted` as a tombstone. */
  readonly record?: ContactRecord;
  readonly request?: ContactRequest;
  /** The own grant that was sent with a consent and is not answered yet. */
  readonly offered?: ContactGrant;
  /** A local name set before there was a record. */
  readonly alias?: string;
  /** Received, but not verified because the contact's device state is missing; never used. */
  readonly unverified?: ContactGrant;
}

/** Member of a tombstone whose account is blocked. It is this client's own (03 §17.2); own devices share it. */
const blocked = 'posthouse.blocked';

/** Whether requests of the account are dropped and its messages are refused. */
export const isBlocked = ({ record }: Pick<ContactRow, 'record'>): boolean =>
  (record as JsonObject | undefined)?.[blocked] === true;

/** Returns the member of a record by which its account is blocked. */
export const blockedMember = { [blocked]: true };

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

/** Returns the local name of an account, if it has one. */
export function aliasOf({ alias, record }: ContactRow): string | undefined {
  return alias ?? record?.alias;
}
