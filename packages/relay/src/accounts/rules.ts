/** Decisions about accounts. No storage and no clock: what is known and the time come in. */
import { ProtocolError } from '@posthouse/protocol';
import type { Home } from '../context.ts';
import type { KnownHome, KnownRoute, StoredState } from './store.ts';

/** Where the known route of highest revision puts an account (01 section 15, 03 section 3.4). */
export function homeFrom(known: KnownHome | undefined, relayId: string, now: number): Home {
  if (known === undefined) return { kind: 'unknown' };
  // Expiry does not end a conflict; only a higher revision does.
  if (known.conflict) return { kind: 'conflict' };
  if (now >= known.expiresAt) return { kind: 'unknown' };
  return known.relayId === relayId
    ? { kind: 'local' }
    : { kind: 'elsewhere', relayId: known.relayId };
}

/**
 * Refuses what only the account's home relay may do, or may be asked by its own account.
 * @throws ProtocolError `route_stale`, `target_not_local`, `invalid_state`
 */
export function requireHome(home: Home): void {
  switch (home.kind) {
    case 'local':
      return;
    case 'elsewhere':
      throw new ProtocolError('route_stale', 'the account is at home at another relay');
    case 'conflict':
      throw new ProtocolError('invalid_state', 'routes of the account conflict');
    case 'unknown':
      throw new ProtocolError('target_not_local', 'the account is not at home here');
  }
}

/**
 * Refuses a question about an account that this relay can neither answer nor pass on.
 * @throws ProtocolError `route_not_found`, `temporarily_unavailable`, `invalid_state`
 */
export function requireAnswerable(home: Home): void {
  switch (home.kind) {
    case 'local':
      return;
    case 'elsewhere':
      throw new ProtocolError('temporarily_unavailable', "the account's relay is out of reach");
    case 'conflict':
      throw new ProtocolError('invalid_state', 'routes of the account conflict');
    case 'unknown':
      throw new ProtocolError('route_not_found', 'no route of the account is known');
  }
}

/**
 * Compares a submitted state with the one stored in its place (01 section 10.1).
 *
 * @returns whether it is an identical repeat
 * @throws ProtocolError `stale_state`, `state_conflict`
 */
export function isRepeatedState(submitted: StoredState, stored: StoredState | undefined): boolean {
  if (stored === undefined || submitted.revision > stored.revision) return false;
  if (submitted.revision < stored.revision) {
    throw new ProtocolError('stale_state', 'a state of higher revision is stored');
  }
  if (submitted.text !== stored.text) {
    throw new ProtocolError('state_conflict', 'another state of this revision is stored');
  }
  return true;
}

/**
 * Compares a route to publish with the highest one ever verified (03 section 9).
 *
 * @returns whether it is the route already known
 * @throws ProtocolError `stale_state`, `state_conflict`
 */
export function isRepeatedRoute(
  submitted: Pick<KnownRoute, 'revision' | 'content'>,
  known: KnownRoute | undefined,
): boolean {
  if (known === undefined || submitted.revision > known.revision) return false;
  if (submitted.revision < known.revision) {
    throw new ProtocolError('stale_state', 'a route of higher revision is known');
  }
  if (known.conflict || submitted.content !== known.content) {
    throw new ProtocolError('state_conflict', 'another route of this revision is known');
  }
  return true;
}

/** What a verified route from elsewhere changes in what is known; `undefined` for nothing. */
export function observedRoute(
  found: KnownRoute,
  known: KnownRoute | undefined,
): KnownRoute | undefined {
  if (known === undefined || found.revision > known.revision) return found;
  if (found.revision < known.revision || found.content === known.content) return undefined;
  return known.conflict ? undefined : { ...known, conflict: true };
}

/**
 * Whether nothing is known of the account having left this relay since it was last at home here.
 * What this relay holds of it may be out of date otherwise.
 */
export function isStillHome(known: KnownHome | undefined, relayId: string): boolean {
  return known?.relayId === relayId && !known.conflict;
}

/** The state a route puts into force, and whether it was pre-stored. */
export interface UsableState {
  readonly state: StoredState;
  readonly staged: boolean;
}

/**
 * The state that a route naming this relay puts into force: the pre-stored one, or the one already
 * authoritative, whichever has the higher revision. A state kept from before the account moved
 * away counts for nothing: devices it permits may have been removed since, at the other relay.
 *
 * @throws ProtocolError `state_conflict` without a usable state (03 section 9)
 */
export function usableState(options: {
  readonly known: KnownRoute | undefined;
  readonly relayId: string;
  readonly kept: StoredState | undefined;
  readonly staged: StoredState | undefined;
}): UsableState {
  const { known, relayId, kept, staged } = options;
  const current = isStillHome(known, relayId) ? kept : undefined;
  if (staged !== undefined && (current === undefined || staged.revision > current.revision)) {
    return { state: staged, staged: true };
  }
  if (current === undefined) {
    throw new ProtocolError('state_conflict', 'no device state of the account is held here');
  }
  return { state: current, staged: false };
}

/**
 * Refuses a time too far from now; exactly at the tolerance passes (01 F4, 03 section 5.6).
 *
 * @throws ProtocolError `clock_skew`
 */
export function checkTime(
  time: number,
  now: number,
  tolerance: { readonly ahead: number; readonly behind?: number },
): void {
  if (time - now > tolerance.ahead) {
    throw new ProtocolError('clock_skew', "time is too far ahead of this relay's clock");
  }
  if (tolerance.behind !== undefined && now - time > tolerance.behind) {
    throw new ProtocolError('clock_skew', "time is too far behind this relay's clock");
  }
}
