/** The stored state of a move to another home relay. */
import type { AccountDeviceState } from '@posthouse/protocol';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { ownKey } from './account-rows.ts';

/** Steps of a move, in their order. */
export const moveSteps = [
  /** Reads the relay that is left once more, if it answers. */
  'last-sync',
  /** Signs the device state and stores it at the new relay. */
  'stage',
  /** Signs the route. */
  'sign-route',
  /** Publishes the route: from then on the new relay is the home. */
  'publish',
  /** Publishes the profile at the new relay. */
  'profile',
  /** Reads and sends at the new relay. */
  'first-sync',
  /** Has the route stored by enough other relays, if it is not yet. */
  'replicate',
] as const;

export type MoveStep = (typeof moveSteps)[number];

/** A move that is not finished: key `own`. */
export interface MoveRecord {
  /** The home relay when the move began. */
  readonly from: string;
  readonly to: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** The step that is next, or under way. */
  readonly step: MoveStep;
  /** The state that is staged, and the revision that it replaces. Stored before it is sent. */
  readonly staged?: { readonly state: AccountDeviceState; readonly replaces: number };
  /** The relay of a move that this one replaces; the account may be at home there. */
  readonly replaced?: string;
  /** A revision that was signed for that relay; new states are above it. */
  readonly floor?: number;
  /** Whether the route may have been sent, so that it may be in force. */
  readonly isRouteSent: boolean;
  /** Whether the new relay confirmed that enough relays store the route. */
  readonly isReplicated: boolean;
}
export const moves = new Collection<MoveRecord>('moves');

/**
 * Whether the account may be at another relay than this device knows: a route that was sent can take
 * effect at any time. One of higher revision that names the old relay ends that.
 */
export function mayHaveLeft(record: MoveRecord | undefined): boolean {
  return record !== undefined && (record.isRouteSent || record.replaced !== undefined);
}

/** Returns the unfinished move, if any. */
export async function unfinishedMove(tx: StoreReader): Promise<MoveRecord | undefined> {
  return await moves.get(tx, ownKey);
}

/**
 * Stores what follows a step; `undefined` ends the move.
 * @returns whether it was stored: another process of this device may have gone on meanwhile
 */
export async function storeMove(
  tx: StoreWriter,
  before: MoveRecord,
  after: MoveRecord | undefined,
): Promise<boolean> {
  const current = await moves.get(tx, ownKey);
  if (JSON.stringify(current) !== JSON.stringify(before)) return false;
  if (after === undefined) await moves.delete(tx, ownKey);
  else await moves.put(tx, ownKey, after);
  return true;
}
