/** Rules of one relationship: its grants, its name, its next record (03 §15.2, §17; 04 §7.2). */
import { type ContactGrant, isGrantExpired, validGrantDevices } from '@posthouse/protocol';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';
import { aliasOf, type ContactRow } from './contact-rows.ts';

/**
 * Returns `updated_at` of the next record: the clock's time, or one more than the current record's
 * if that is later (03 §17.3).
 *
 * @throws ClientError `counter_exhausted`
 */
export function nextUpdatedAt(core: AccountCore, row: ContactRow): number {
  const next = Math.max((row.record?.updated_at ?? -1) + 1, unixSeconds(core.clock));
  if (!Number.isSafeInteger(next))
    throw new ClientError(
      'counter_exhausted',
      'no later `updated_at` is left for the contact record',
    );
  return next;
}

/** Returns the grant this account issued to a contact, if it is still stored (04 §7.2). */
export function issuedGrant(row: ContactRow): ContactGrant | undefined {
  return row.record?.grant_to_contact ?? row.offered;
}

/**
 * Whether another account may write to this one: the issued grant is stored, not expired, and signed
 * by a currently valid device of the own account.
 */
export async function mayWriteToUs(
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

/** Returns the row with an active relationship and a new record with the grants of both sides. */
export function withActiveRelationship(
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
