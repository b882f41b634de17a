/** The relationship with one other account, as a pure state machine (03 §15.2). */

export interface Relationship {
  /**
   * `deleted` leaves a tombstone, which wins against older state but does not block the account.
   */
  readonly status: 'none' | 'active' | 'deleted';
  /** A valid consent arrived that the user has not decided about. */
  readonly pending: boolean;
  /** This account sent its own consent and waits for the other's. */
  readonly awaiting: boolean;
}

/** Before anything happened. */
export const noRelationship: Relationship = { status: 'none', pending: false, awaiting: false };

export type RelationshipEvent =
  /** The user adds the account as a contact. */
  | 'user-adds'
  /** A consent arrived and was verified. */
  | 'consent'
  /** The user accepts the pending request. */
  | 'user-accepts'
  /** The user turns the pending request down. */
  | 'user-declines'
  /** The user deletes the contact. */
  | 'user-deletes'
  /** A `deleted` record won selection. */
  | 'deletion-adopted'
  /** An `active` record won selection. */
  | 'activation-adopted';

/** The client's actions of a step, in this order. */
export type RelationshipEffect =
  /** Keep the consent's grant, selected against what is saved (03 §16.4). */
  | 'save-incoming-grant'
  /** Keep the consent for the user to decide. */
  | 'store-request'
  /** Send the own consent; after `user-accepts` with the peer's grant as authorization. */
  | 'send-consent'
  /** Drop the grants of both directions. */
  | 'clear-grants';

export interface RelationshipStep {
  readonly state: Relationship;
  readonly effects: readonly RelationshipEffect[];
}

/**
 * Applies one event. An event that does not apply changes nothing and has no effects.
 *
 * @example
 * const { state, effects } = relationshipStep(noRelationship, 'user-adds');
 * // state.awaiting === true, effects: ['send-consent']
 */
export function relationshipStep(state: Relationship, event: RelationshipEvent): RelationshipStep {
  switch (event) {
    case 'user-adds':
      if (state.status === 'active') return unchanged(state);
      return { state: { ...state, awaiting: true }, effects: ['send-consent'] };
    case 'consent':
      return consentArrives(state);
    case 'user-accepts':
      if (!state.pending) return unchanged(state);
      return { state: established, effects: ['save-incoming-grant', 'send-consent'] };
    case 'user-declines':
      return unchanged({ ...state, pending: false });
    case 'user-deletes':
      if (state.status !== 'active') return unchanged(state);
      return deleted(state);
    case 'deletion-adopted':
      return deleted(state);
    case 'activation-adopted':
      return unchanged(established);
  }
}

const established: Relationship = { status: 'active', pending: false, awaiting: false };

function consentArrives(state: Relationship): RelationshipStep {
  if (state.status === 'active') return { state, effects: ['save-incoming-grant'] };
  if (state.awaiting) return { state: established, effects: ['save-incoming-grant'] };
  // Never establishes or restores by itself, whatever was sent in the past.
  return { state: { ...state, pending: true }, effects: ['store-request'] };
}

/** Returns the deleted state: an undecided request stays, waiting ends. */
function deleted(state: Relationship): RelationshipStep {
  return {
    state: { status: 'deleted', pending: state.pending, awaiting: false },
    effects: ['clear-grants'],
  };
}

function unchanged(state: Relationship): RelationshipStep {
  return { state, effects: [] };
}
