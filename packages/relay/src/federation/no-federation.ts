/** The relay network as seen by a relay that knows no other relay. */
import type { RelayClient, RouteDirectory } from '../context.ts';

/** Finds no route: what this relay does not hold itself, it cannot learn. */
export const noRoutes: RouteDirectory = {
  resolveRemote: () => Promise.resolve([]),
};

/** Reaches nobody, and can be certain of it. */
export const noRelayClient: RelayClient = {
  deliver: () => Promise.resolve({ kind: 'unreachable' }),
};
