/** Chooses between two grants, and merges their signatures (03 §16.4). */
import { ProtocolError } from '../errors.ts';
import type { Network } from '../identity/index.ts';
import { canonicalWith } from '../json/canonical.ts';
import { isJsonObject } from '../json/types.ts';
import {
  type ContactGrant,
  type DeviceStateAt,
  grantSignatures,
  validGrantDevices,
  verifyGrant,
} from './grant.ts';

/** Scope of saved grants, within the trusted network context. */
interface GrantScope {
  readonly grantor: string;
  readonly grantee: string;
}

/** The decision about a candidate, and the grant to save. */
export type GrantSelection =
  | {
      readonly outcome: 'out_of_scope' | 'invalid' | 'keep';
      /** The saved grant, untouched. */
      readonly grant: ContactGrant | undefined;
    }
  | { readonly outcome: 'save' | 'merge' | 'replace'; readonly grant: ContactGrant };

export interface SelectGrantInput extends DeviceStateAt {
  readonly scope: GrantScope;
  readonly saved: ContactGrant | undefined;
  /** As received; unchecked. */
  readonly candidate: unknown;
  /** Context of the network the candidate came over; the trusted one by default. */
  readonly context?: string;
}

/**
 * Decides about a received grant. The longer period wins, equal bodies merge their signatures,
 * nothing shortens a grant. Scope comes first: the signatures of a grant of another network or
 * account pair are not verified.
 *
 * @param input.state the grantor's verified state
 * @throws TypeError when `saved` is not of the scope, which is the caller's own fault
 * @example
 * const scope = { grantor: peer, grantee: account };
 * const { outcome, grant } = selectGrant(network, { scope, saved, candidate: value, state, now });
 */
export function selectGrant(network: Network, input: SelectGrantInput): GrantSelection {
  const { scope, saved, candidate, context = network.context } = input;
  if (saved !== undefined && !isOfScope(saved, scope)) {
    throw new TypeError('the saved grant is of another scope');
  }
  if (context !== network.context) return { outcome: 'out_of_scope', grant: saved };
  if (!hasAccounts(candidate)) return { outcome: 'invalid', grant: saved };
  if (!isOfScope(candidate, scope)) return { outcome: 'out_of_scope', grant: saved };
  const grant = validGrant(network, candidate, input);
  if (grant === undefined) return { outcome: 'invalid', grant: saved };
  if (saved === undefined) return { outcome: 'save', grant };
  if (body(saved) === body(grant)) {
    return { outcome: 'merge', grant: mergeGrants(network, saved, { ...input, candidate: grant }) };
  }
  return end(grant) > end(saved)
    ? { outcome: 'replace', grant }
    : { outcome: 'keep', grant: saved };
}

/**
 * Removes the signatures of devices that are no longer currently valid. If no signature that
 * verifies would remain, the grant stays as it is.
 *
 * @example
 * const cleaned = cleanGrant(network, grant, { state, now });
 */
export function cleanGrant(
  network: Network,
  grant: ContactGrant,
  devices: DeviceStateAt,
): ContactGrant {
  const current = [...grantSignatures(network, grant, devices).keys()];
  if (current.length === Object.keys(grant.signatures).length) return grant;
  if (validGrantDevices(network, grant, devices).length === 0) return grant;
  return { ...grant, signatures: pick(grant.signatures, current) };
}

/** Signatures of devices that are valid and verify; a saved one stays before a received one. */
function mergeGrants(
  network: Network,
  saved: ContactGrant,
  input: DeviceStateAt & { readonly candidate: ContactGrant },
): ContactGrant {
  const { candidate } = input;
  const signatures = {
    ...pick(candidate.signatures, validGrantDevices(network, candidate, input)),
    ...pick(saved.signatures, validGrantDevices(network, saved, input)),
  };
  return { ...saved, signatures };
}

function validGrant(
  network: Network,
  candidate: unknown,
  devices: DeviceStateAt,
): ContactGrant | undefined {
  try {
    verifyGrant(network, candidate, devices);
    return candidate;
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}

function hasAccounts(value: unknown): value is GrantScope {
  return (
    isJsonObject(value) && typeof value.grantor === 'string' && typeof value.grantee === 'string'
  );
}

function isOfScope(grant: GrantScope, scope: GrantScope): boolean {
  return grant.grantor === scope.grantor && grant.grantee === scope.grantee;
}

function body(grant: ContactGrant): string {
  return canonicalWith(grant, { omit: ['signatures'] });
}

/** No planned end ranks above every finite one. */
function end(grant: ContactGrant): number {
  return grant.expires_at ?? Number.POSITIVE_INFINITY;
}

function pick(signatures: ContactGrant['signatures'], deviceIds: readonly string[]) {
  return Object.fromEntries(deviceIds.map((id) => [id, signatures[id] as string]));
}
