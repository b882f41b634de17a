/** Decisions about accounts. No storage and no clock: stored values and the time are parameters. */
import { ProtocolError } from '@posthouse/protocol';
import type { Home } from '../context.ts';
import type { SeenState } from './seen-store.ts';
import type { KnownHome, KnownRoute, StoredState } from './store.ts';

/** Determines the home from the known route of highest revision (01 section 15, 03 section 3.4). */
export function homeFrom(known: KnownHome | undefined, relayId: string, now: number): Home {
  if (known === undefined) return { kind: 'unknown' };
  // Only a higher revision ends a conflict; expiry does not.
  if (known.conflict) return { kind: 'conflict' };
  // The route was used here until the database was restored (`restored.ts`).
  if (known.relayId === relayId && now < -known.heldUntil) return { kind: 'unconfirmed' };
  // Expired, or no relay has sent it for so long that it may be out of date (07 §B5).
  if (now >= known.heldUntil) return { kind: 'unknown' };
  return known.relayId === relayId
    ? { kind: 'local' }
    : { kind: 'elsewhere', relayId: known.relayId };
}

/**
 * Refuses a request that only the account's home relay may serve.
 * @throws ProtocolError `route_stale`, `target_not_local`, `invalid_state`, `temporarily_unavailable`
 */
export function requireHome(home: Home): void {
  switch (home.kind) {
    case 'local':
      return;
    case 'elsewhere':
      throw new ProtocolError('route_stale', 'the account is at home at another relay');
    case 'conflict':
      throw new ProtocolError('invalid_state', 'routes of the account conflict');
    case 'unconfirmed':
      throw unconfirmed();
    case 'unknown':
      throw new ProtocolError('target_not_local', 'the account is not at home here');
  }
}

function unconfirmed(): ProtocolError {
  return new ProtocolError(
    'temporarily_unavailable',
    'the relay was restored, and looks up whether the account has moved: try again',
  );
}

/**
 * Refuses a query about an account that is not at home here.
 * @throws ProtocolError `route_not_found`, `temporarily_unavailable`, `invalid_state`
 */
export function requireAnswerable(home: Home): void {
  if (home.kind === 'local') return;
  homeRelay(home);
  throw new ProtocolError(
    'temporarily_unavailable',
    "the account's relay cannot be reached: try again later",
  );
}

/**
 * Returns the relay to ask about an account that is not at home here.
 * @throws ProtocolError `route_not_found`, `invalid_state`, `temporarily_unavailable`
 */
export function homeRelay(home: Exclude<Home, { readonly kind: 'local' }>): string {
  switch (home.kind) {
    case 'elsewhere':
      return home.relayId;
    case 'conflict':
      throw new ProtocolError('invalid_state', 'routes of the account conflict');
    case 'unconfirmed':
      throw unconfirmed();
    case 'unknown':
      throw new ProtocolError('route_not_found', 'no route of the account is known');
  }
}

/**
 * Compares a submitted state with the stored one (01 section 10.1).
 *
 * @returns true for an identical repeat
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
 * Compares a state that another relay answered with the highest known one (07 §C6).
 *
 * @returns true if it is the known one
 * @throws ProtocolError `stale_state`, `state_conflict`
 */
export function isSeenState(answered: SeenState, known: SeenState | undefined): boolean {
  if (known === undefined || answered.revision > known.revision) return false;
  if (answered.revision < known.revision) {
    throw new ProtocolError('stale_state', 'a state of higher revision was seen');
  }
  if (answered.digest !== known.digest) {
    throw new ProtocolError('state_conflict', 'another state of this revision was seen');
  }
  return true;
}

/**
 * Compares a route to publish with the highest one ever verified (03 section 9).
 *
 * @returns true if it is the known route
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

/** What a verified route means for the stored memory of its account (07 §B11). */
export type Observation = 'accepted' | 'same' | 'stale' | 'conflict';

/**
 * Compares a verified route with the stored one (07 §B11).
 *
 * @returns `next`: the route to store, `undefined` if the stored one stays as it is
 */
export function observedRoute(
  found: KnownRoute,
  known: KnownRoute | undefined,
): { readonly observation: Observation; readonly next: KnownRoute | undefined } {
  if (known === undefined || found.revision > known.revision) {
    return { observation: 'accepted', next: found };
  }
  if (found.revision < known.revision) return { observation: 'stale', next: undefined };
  if (known.conflict) return { observation: 'conflict', next: undefined };
  if (found.content === known.content) return { observation: 'same', next: undefined };
  return { observation: 'conflict', next: { ...known, conflict: true } };
}

/**
 * Tells whether the account was at home here all the time since its stored state, by the known
 * route. If not, the state and the profile stored here may be out of date.
 */
export function isStillHome(known: KnownHome | undefined, relayId: string): boolean {
  return known?.relayId === relayId && !known.conflict;
}

/** The state that a route puts into force, and whether it was pre-stored. */
export interface UsableState {
  readonly state: StoredState;
  readonly staged: boolean;
}

/**
 * Chooses the state that a route naming this relay puts into force: the pre-stored or the
 * authoritative one, the higher revision of both. A state from before the account moved away is not
 * used: its devices may have been removed at the other relay since.
 *
 * @throws ProtocolError `state_conflict` without a usable state (03 section 9)
 */
export function usableState(options: {
  readonly known: KnownRoute | undefined;
  readonly relayId: string;
  readonly stored: StoredState | undefined;
  readonly staged: StoredState | undefined;
}): UsableState {
  const { known, relayId, stored, staged } = options;
  const current = isStillHome(known, relayId) ? stored : undefined;
  if (staged !== undefined && (current === undefined || staged.revision > current.revision)) {
    return { state: staged, staged: true };
  }
  if (current === undefined) {
    throw new ProtocolError('state_conflict', 'no device state of the account is held here');
  }
  return { state: current, staged: false };
}

/**
 * Returns until when a state is pre-stored (03 §4.2): long for an account that moves here, short for
 * one without a known route. A higher revision keeps the room of the one before it: it lasts at
 * least until the end that was answered, and never longer than `stagingWindow` in all.
 *
 * @param options.staged the state that is replaced
 */
export function stagingEnd(options: {
  readonly now: number;
  readonly staged: { readonly since: number; readonly stagedUntil: number } | undefined;
  readonly isMoving: boolean;
  readonly limits: { readonly stagingWindow: number; readonly stagingWindowOfUnknown: number };
}): number {
  const { now, staged, isMoving, limits } = options;
  const end = now + (isMoving ? limits.stagingWindow : limits.stagingWindowOfUnknown);
  if (staged === undefined) return end;
  return Math.max(staged.stagedUntil, Math.min(end, staged.since + limits.stagingWindow));
}

/**
 * Refuses a time too far from now; exactly at the tolerance passes (01 F4, 03 section 5.6).
 *
 * @throws ProtocolError `clock_skew`
 */
export function checkTime(
  time: number,
  now: number,
  tolerance: { readonly ahead: number; readonly past?: number },
): void {
  if (time - now > tolerance.ahead) {
    throw new ProtocolError('clock_skew', "time is too far ahead of this relay's clock");
  }
  if (tolerance.past !== undefined && now - time > tolerance.past) {
    throw new ProtocolError('clock_skew', "time is too far in the past of this relay's clock");
  }
}

/** Returns the seconds until another relay is asked again after failures in a row, 0 for the first. */
export function retryDelay(
  failures: number,
  limits: { readonly remoteRetryFirst: number; readonly remoteRetryMost: number },
): number {
  return Math.min(limits.remoteRetryMost, limits.remoteRetryFirst * 2 ** Math.min(failures, 30));
}
