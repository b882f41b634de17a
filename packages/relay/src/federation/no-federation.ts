/** Route directory and relay client of a relay without connections to other relays. */
import type { RelayClient, RouteDirectory } from '../context.ts';

/** Finds no route. */
export const noRoutes: RouteDirectory = {
  resolveRemote: () => Promise.resolve([]),
};

/** Answers that no relay can be reached and no request was sent. */
export const noRelayClient: RelayClient = {
  deliver: () => Promise.resolve({ kind: 'unreachable' }),
};
