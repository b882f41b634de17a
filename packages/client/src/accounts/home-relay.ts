/** The account's home relay, and finding it again after another device moved it. */
import type { FinalRoute } from '@posthouse/protocol';
import { callWithoutSession } from '../connect/unauthenticated-call.ts';
import type { Core } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import { usableRoute, verifyAndStoreRoute } from './routes.ts';

/** Whether an error says that the relay is not the account's home, or does not know it. */
export function isWrongHome(error: unknown): boolean {
  return isRefusal(error, 'route_stale', 'target_not_local');
}

/**
 * Returns the relay of the route that may be used now.
 * @throws ClientError `not_set_up` if no route is known, or the known route has expired
 */
export async function homeRelay(core: Core, account: string): Promise<string> {
  const route = await core.store.read((tx) => usableRoute(core, tx, account));
  if (route === undefined)
    throw new ClientError(
      'not_set_up',
      'the account has no usable route: set it up again with its account key',
    );
  return route.relay_id;
}

/**
 * Asks relays of the registry for the account's route, until one returns a route that is not older
 * than the known one.
 *
 * @throws ClientError `no_relay` if no relay returns one
 */
export async function refreshHome(
  core: Core,
  account: string,
  signal: AbortSignal,
): Promise<FinalRoute> {
  const { discovery, registry } = core;
  const method = 'account.route.resolve';
  let cause: unknown;
  for await (const { relay_id: relayId, status } of registry.listRelays()) {
    if (status !== 'active') continue;
    try {
      const relay = await discovery.find(relayId, signal);
      const call = { method, params: { account } } as const;
      const answer = await callWithoutSession(core, { relay, signal }, call);
      return await verifyAndStoreRoute(core, answer, { account, method, signal });
    } catch (error) {
      if (!isClientError(error)) throw error;
      cause = error;
    }
  }
  throw new ClientError('no_relay', 'no relay knows the route of the account: try again later', {
    cause,
  });
}
