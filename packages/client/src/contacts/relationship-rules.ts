/** Rules of one relationship: its grants, its name, its next record (03 §15.2, §17; 04 §7.2). */
import { type ContactGrant, isGrantExpired, validGrantDevices } from '@posthouse/protocol';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';
import { aliasOf, type ContactRow } from './contact-rows.ts';

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

/** The grant this account issued to a contact and still keeps (04 §7.2). */
export function issuedGrant(row: ContactRow): ContactGrant | undefined {
  return row.record?.grant_to_contact ?? row.offered;
}

/**
 * Whether this account still lets another one write to it: the grant it issued is kept, unexpired,
 * and carried by a device of the own account that is valid now.
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

/** The row as an active relationship, with a new record of the grants of both directions. */
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
