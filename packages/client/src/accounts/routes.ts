/** Verified routes, with the highest revision and conflicts stored (03 §3.4, §10). */
import { type AccountRoute, type FinalRoute, routeContent, verifyRoute } from '@posthouse/protocol';
import { canonicalWith } from '@posthouse/protocol/json';
import type { Core } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { checkRelayAnswer, isClientError, RelayMisbehaviour } from '../errors.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { ownKey, ownRecords, type RouteRecord, routes } from './account-rows.ts';
import { noteHomeChange } from './former-relay-rows.ts';

/** Seconds that a route's time may be ahead of our clock. */
const futureTolerance = 300;

/**
 * Verifies a final route that a relay answered: the relay it names is active and its current
 * descriptor holds the key, both signatures verify, the times are sound.
 *
 * @throws RelayMisbehaviour `wrong_account`, `invalid_route`
 */
async function verifiedRoute(
  core: Core,
  value: AccountRoute,
  expected: { readonly account: string; readonly method: string; readonly signal: AbortSignal },
): Promise<FinalRoute> {
  const { account, method, signal } = expected;
  if (value.account !== account) {
    throw new RelayMisbehaviour('wrong_account', 'route of another account', { method });
  }
  const now = unixSeconds(core.clock);
  if (now >= value.expires_at || value.updated_at > now + futureTolerance) {
    throw new RelayMisbehaviour('invalid_route', 'outside its period', { method });
  }
  const relayPublicKey = await relayKey(core, value.relay_id, { method, signal });
  return checkRelayAnswer('invalid_route', method, () => {
    verifyRoute(core.network, value, { relayPublicKey });
    return value;
  });
}

async function relayKey(
  core: Core,
  relayId: string,
  { method, signal }: { readonly method: string; readonly signal: AbortSignal },
): Promise<string> {
  try {
    return (await core.discovery.find(relayId, signal)).descriptor.public_key;
  } catch (cause) {
    if (!isClientError(cause, 'no_relay')) throw cause;
    throw new RelayMisbehaviour('invalid_route', 'names no active relay', { method, cause });
  }
}

/**
 * Stores a verified route.
 * @throws RelayMisbehaviour `route_rollback`, `route_conflict`
 */
async function adoptRoute(
  core: Core,
  tx: StoreWriter,
  { route, method }: { readonly route: FinalRoute; readonly method: string },
): Promise<void> {
  const known: RouteRecord = (await routes.get(tx, route.account)) ?? {};
  const highest = known.route?.revision ?? -1;
  if (route.revision < highest) {
    throw new RelayMisbehaviour('route_rollback', 'older than the known route', { method });
  }
  if (known.conflict !== undefined && route.revision <= known.conflict) {
    throw new RelayMisbehaviour('route_conflict', 'its revision is in conflict', { method });
  }
  await noteOwnHome(core, tx, { before: known.route, route });
  const { draft, ...others } = known;
  // A draft is done when a route of its revision or a higher one exists.
  const open = draft !== undefined && draft.revision > route.revision;
  await routes.put(tx, route.account, { ...others, route, ...(open && { draft }) });
}

/** If the own account changed its home, the relay that it left is still to be read (03 §12.2). */
async function noteOwnHome(
  core: Core,
  tx: StoreWriter,
  { before, route }: { readonly before: FinalRoute | undefined; readonly route: FinalRoute },
): Promise<void> {
  if (before === undefined || before.relay_id === route.relay_id) return;
  if ((await ownRecords.get(tx, ownKey))?.account !== route.account) return;
  const now = core.clock.milliseconds();
  await noteHomeChange(tx, { left: before.relay_id, home: route.relay_id, now });
}

/** Whether a verified route contradicts the known one: same revision, other content. */
async function isRouteConflict(core: Core, tx: StoreReader, route: FinalRoute): Promise<boolean> {
  const known = (await routes.get(tx, route.account))?.route;
  return (
    known?.revision === route.revision &&
    routeContent(core.network, known) !== routeContent(core.network, route)
  );
}

/**
 * Verifies and stores a route. If two contents share a revision, neither is used any more, and the
 * conflict is stored.
 *
 * @throws RelayMisbehaviour
 */
export async function verifyAndStoreRoute(
  core: Core,
  value: AccountRoute,
  expected: { readonly account: string; readonly method: string; readonly signal: AbortSignal },
): Promise<FinalRoute> {
  const { method } = expected;
  const route = await verifiedRoute(core, value, expected);
  const conflict = await core.store.write(async (tx) => {
    if (await isRouteConflict(core, tx, route)) {
      const known = await routes.get(tx, route.account);
      await routes.put(tx, route.account, { ...known, conflict: route.revision });
      return true;
    }
    await adoptRoute(core, tx, { route, method });
    return false;
  });
  if (conflict) {
    throw new RelayMisbehaviour('route_conflict', 'known revision with other content', { method });
  }
  return route;
}

/** Returns the route that may be used now, if any. */
export async function usableRoute(
  core: Core,
  tx: StoreReader,
  account: string,
): Promise<FinalRoute | undefined> {
  const { route, conflict } = (await routes.get(tx, account)) ?? {};
  if (route === undefined || unixSeconds(core.clock) >= route.expires_at) return undefined;
  return conflict !== undefined && route.revision <= conflict ? undefined : route;
}

/** Returns the highest revision that was verified or signed by this client (03 §3.4). */
export function highestRouteRevision({ route, draft, conflict }: RouteRecord): number | undefined {
  const known = [route?.revision, draft?.revision, conflict].filter((item) => item !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** Whether a final route equals the draft except for the relay's signature (03 §9). */
export function isCosigned(draft: AccountRoute, final: AccountRoute): boolean {
  const text = (route: AccountRoute) => canonicalWith(route, { omit: ['relay_signature'] });
  return final.relay_signature !== undefined && text(draft) === text(final);
}
