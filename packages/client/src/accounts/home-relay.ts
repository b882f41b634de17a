/** Which relay is the account's home, and finding it again after another device moved it. */
import type { FinalRoute } from '@posthouse/protocol';
import { callWithoutSession } from '../connect/unauthenticated-call.ts';
import type { Core } from '../core.ts';
import { ClientError, isClientError, isRefusal } from '../errors.ts';
import { usableRoute, verifyAndStoreRoute } from './routes.ts';

/** Errors by which a relay says that it is not the home, or cannot tell. */
export function isWrongHome(error: unknown): boolean {
  return isRefusal(error, 'route_stale', 'target_not_local');
}

/**
 * The relay of the route that may be used now.
 * @throws ClientError `not_set_up` where no route is known, or the known one has ended
 */
export async function homeRelay(core: Core, account: string): Promise<string> {
  const route = await core.store.read((tx) => usableRoute(core, tx, account));
  if (route === undefined) throw new ClientError('not_set_up', 'the account has no usable route');
  return route.relay_id;
}

/**
 * Asks relays of the registry for the account's route, until one has an answer that is not older
 * than what is known.
 *
 * @throws ClientError `no_relay` where none has
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
  throw new ClientError('no_relay', 'no relay knows the route of the account', { cause });
}
