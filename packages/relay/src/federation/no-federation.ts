/** Route directory and relay client of a relay without connections to other relays. */
import type { RelayClient, RouteDirectory } from '../context.ts';

/** Finds no route; there is no other relay that could store one. */
export const noRoutes: RouteDirectory = {
  hasRelays: false,
  isAlone: true,
  areAllAway: true,
  resolveRemote: () =>
    Promise.resolve({ routes: [], unverified: [], missed: [], claimed: [], nearest: [] }),
  replicate: (_route, leaving) =>
    Promise.resolve({ isEnough: true, reachedLeaving: leaving === undefined }),
};

/** Answers that no relay can be reached and no request was sent. */
export const noRelayClient: RelayClient = {
  call: () => Promise.resolve({ kind: 'unreachable' }),
  notify: () => Promise.resolve(false),
  pausedUntil: () => undefined,
  callsAtOnce: () => 1,
};
