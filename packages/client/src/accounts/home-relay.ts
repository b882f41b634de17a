/** The account's home relay, and finding it again after another device moved it. */
import { activeRelays, type FinalRoute } from '@posthouse/protocol';
import { callWithoutSession } from '../connect/unauthenticated-call.ts';
import type { AccountCore, Core } from '../core.ts';
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
 * Works at the own account's home relay; if the account left it, once more at the new one. If the
 * relay is away, others are asked: another device may have moved the account meanwhile.
 *
 * @throws ClientError `no_relay`, and what the work throws
 */
export async function atCurrentHome<T>(
  core: AccountCore,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isWrongHome(error)) await refreshHome(core, core.account, signal);
    else if (!isAway(error) || !(await hasMovedFromAway(core, signal))) throw error;
    return await work();
  }
}

/** Whether a relay cannot be reached, or is not in the registry any more. */
export function isAway(error: unknown): boolean {
  return isClientError(error, 'relay_unreachable') || isClientError(error, 'no_relay');
}

/** Asks relays other than the home relay whether the account left it while it is away. */
export async function hasMovedFromAway(core: AccountCore, signal: AbortSignal): Promise<boolean> {
  const before = await core.store.read((tx) => usableRoute(core, tx, core.account));
  if (before === undefined) return false;
  try {
    const without = before.relay_id;
    const route = await refreshHome(core, core.account, signal, { without, most: mostWhenAway });
    return route.relay_id !== before.relay_id;
  } catch (error) {
    if (!isClientError(error)) throw error;
    signal.throwIfAborted();
    return false;
  }
}

/** Relays that are asked while the home relay is away. */
const mostWhenAway = 8;

/** Relays that may answer the known route before asking ends. */
const sameAnswers = 4;

/**
 * Asks relays for the account's route until one returns a newer one than the known: the known home
 * relay first, which knows when the account left it, then those of the registry. If several return
 * the known route, it is the account's.
 *
 * @param options.without a relay that is not asked
 * @param options.most relays that are asked at most
 * @throws ClientError `no_relay` if no relay returns one
 */
export async function refreshHome(
  core: Core,
  account: string,
  signal: AbortSignal,
  {
    without,
    most = Number.POSITIVE_INFINITY,
  }: { readonly without?: string; readonly most?: number } = {},
): Promise<FinalRoute> {
  const known = await core.store.read((tx) => usableRoute(core, tx, account));
  let same = 0;
  let asked = 0;
  let cause: unknown;
  for await (const relayId of relaysToAsk(core, { first: known?.relay_id, signal })) {
    if (relayId === without) continue;
    asked += 1;
    if (asked > most) break;
    try {
      const route = await resolveRouteAt(core, relayId, { account, signal });
      if (known === undefined || route.revision > known.revision) return route;
      same += 1;
    } catch (error) {
      if (!isClientError(error)) throw error;
      signal.throwIfAborted();
      cause = error;
    }
    if (same === sameAnswers) break;
  }
  if (known !== undefined && same > 0) return known;
  throw new ClientError('no_relay', 'no relay knows the route of the account: try again later', {
    cause,
  });
}

/** Lists the registry's active relays, one of them first. */
async function* relaysToAsk(
  { registry }: Core,
  { first, signal }: { readonly first: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<string> {
  if (first !== undefined) yield first;
  for (const { relay_id: relayId } of await activeRelays(registry, { signal })) {
    if (relayId !== first) yield relayId;
  }
}

/**
 * Asks one relay for an account's route, verifies and stores it.
 * @throws ClientError `no_relay`; RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function resolveRouteAt(
  core: Core,
  relayId: string,
  { account, signal }: { readonly account: string; readonly signal: AbortSignal },
): Promise<FinalRoute> {
  const method = 'account.route.resolve';
  const relay = await core.discovery.find(relayId, signal);
  const answer = await callWithoutSession(core, { relay, signal }, { method, params: { account } });
  return await verifyAndStoreRoute(core, answer, { account, method, signal });
}
