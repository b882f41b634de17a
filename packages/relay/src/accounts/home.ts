import {
  type FinalRoute,
  type Network,
  ProtocolError,
  routeContent,
  routeDraftSignatures,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Home, RelayContext, RouteLookup } from '../context.ts';
import { digest } from '../digest.ts';
import type { Reader } from '../storage/types.ts';
import { confirmRoute } from './own-route-store.ts';
import { offerDelay } from './publish-times.ts';
import { type Hold, holdRoute } from './route-value-store.ts';
import { homeFrom, type Observation, observedRoute } from './rules.ts';
import { type KnownRoute, readKnownHome, readRoute } from './store.ts';
import { storeRoute, wakeRouteJobs } from './store-route.ts';

/** Determines an account's home from stored routes. */
export async function homeOf(
  tx: Reader,
  account: string,
  relayId: string,
  now: number,
): Promise<Home> {
  return homeFrom(await readKnownHome(tx, account), relayId, now);
}

export interface LocateOptions {
  /** Unix seconds. */
  readonly now: number;
  /** Asks the directory even if a fresh answer is known, and even about an account at home here. */
  readonly refresh?: boolean;
  /**
   * Who causes a lookup: `address …`, `account …` or `relay …`. Its lookups are limited
   * (`routeLookupRate`); those of this relay's own jobs are not.
   */
  readonly asker?: string;
}

/**
 * Determines an account's home, asking the route directory if storage has no fresh answer. Routes
 * from the directory are stored, so that revisions and conflicts hold for good (07 §B11).
 *
 * @throws ProtocolError `rate_limited` if a lookup is needed and too many are under way
 */
export async function locate(
  context: RelayContext,
  account: string,
  { now, refresh = false, asker }: LocateOptions,
): Promise<Home> {
  const { storage, identity, routeDirectory, routeLookups } = context;
  const stored = await storage.read((tx) => homeOf(tx, account, identity.relayId, now));
  const serves = stored.kind === 'local' || routeLookups.isFresh(account, stored);
  if (serves && !refresh) return stored;
  if (!routeDirectory.hasRelays) {
    // Before the registry was read, no other relay is known although there may be many.
    return routeDirectory.isAlone ? await confirmed(context, account, stored) : stored;
  }
  try {
    const lookup = { asker, lookUp: () => lookUp(context, account) };
    return (await routeLookups.run(account, lookup)).home;
  } catch (error) {
    // The route of highest revision ever verified serves until a lookup finds a higher one.
    if (stored.kind === 'elsewhere' && !refresh && isRateLimited(error)) return stored;
    throw error;
  }
}

/** Tells whether a lookup was refused because too much is looked up. */
export function isRateLimited(error: unknown): boolean {
  return error instanceof ProtocolError && error.code === 'rate_limited';
}

/**
 * Asks the network whether an account that is at home here, or is about to be, is at home elsewhere.
 *
 * @param asker as for {@link locate}
 * @throws ProtocolError `rate_limited` if too many lookups are under way
 */
export async function confirmHome(
  context: RelayContext,
  account: string,
  asker?: string,
): Promise<RouteLookup> {
  return await context.routeLookups.run(account, {
    asker,
    lookUp: () => lookUp(context, account),
  });
}

/** Asks one relay for a higher route of an account that is at home here. */
export async function confirmHomeWith(
  context: RelayContext,
  relayId: string,
  account: string,
): Promise<RouteLookup> {
  return await lookUp(context, account, relayId);
}

async function lookUp(context: RelayContext, account: string, only?: string): Promise<RouteLookup> {
  const { clock, identity, limits, routeDirectory, storage } = context;
  const known = await storage.read((tx) => readKnownHome(tx, account));
  const answers = await routeDirectory.resolveRemote(account, only, known?.relayId);
  const { routes, unverified, missed, claimed, nearest } = answers;
  const now = clock.now();
  const usable = routes.filter(
    (route) =>
      route.account === account &&
      route.updated_at - now <= limits.futureTolerance &&
      now < route.expires_at,
  );
  // What a lookup found is no value of this relay, and not for it to pass on.
  const hold = { until: now + limits.ownRouteCheck, publishAt: undefined };
  if (usable.length > 0) await storeRoutes(context, account, { routes: usable, hold });
  const found = await storage.read((tx) => homeOf(tx, account, identity.relayId, now));
  // Who answered nothing may know of a move.
  const isAsked = nearest.length > 0 || routeDirectory.areAllAway;
  const mayConfirm = only === undefined && isAsked;
  const home = mayConfirm ? await confirmed(context, account, found, unverified) : found;
  return { home, hasFound: usable.length > 0, missed, claimed, nearest };
}

/**
 * Puts a route into use again for which a restored relay has asked all that there are to ask.
 *
 * @param unverified routes that others answered and that could not be confirmed: a higher one that the
 *   account signed shows that it may have moved, so nothing is put into use
 */
async function confirmed(
  context: RelayContext,
  account: string,
  home: Home,
  unverified: readonly FinalRoute[] = [],
): Promise<Home> {
  if (home.kind !== 'unconfirmed') return home;
  const { clock, identity, storage } = context;
  for (const route of unverified) {
    if (await mayHaveMoved(context, account, route)) return home;
  }
  return await storage.write(`account:${account}`, async (tx) => {
    await confirmRoute(tx, account);
    return await homeOf(tx, account, identity.relayId, clock.now());
  });
}

/** Tells whether the account signed a route, and it is higher than the known one or conflicts with it. */
async function mayHaveMoved(
  { network, storage, verifier }: RelayContext,
  account: string,
  route: FinalRoute,
): Promise<boolean> {
  if (route.account !== account) return false;
  const known = await storage.read((tx) => readRoute(tx, account));
  if (observedRoute(knownRoute(network, route), known).next === undefined) return false;
  try {
    await verifier.verify(routeDraftSignatures(network, route), 'route');
    return true;
  } catch (error) {
    if (error instanceof ProtocolError && error.code === 'invalid_signature') return false;
    throw error;
  }
}

/**
 * Stores a final route that was completely verified and has not expired (07 §B10): only the route
 * of highest revision is used, and another content of its revision is a conflict that a higher
 * revision ends. Durable when this resolves.
 */
export async function observeRoute(context: RelayContext, route: FinalRoute): Promise<Observation> {
  const { clock, limits } = context;
  const now = clock.now();
  const publishAt = now + offerDelay(context, route.account);
  const hold = { until: now + limits.dhtValueLife, publishAt };
  const [observation] = await storeRoutes(context, route.account, { routes: [route], hold });
  return observation as Observation;
}

/** @returns an observation for each route */
async function storeRoutes(
  context: RelayContext,
  account: string,
  { routes, hold }: { readonly routes: readonly FinalRoute[]; readonly hold: Hold },
): Promise<Observation[]> {
  const { clock, identity, network, storage } = context;
  const observations = await storage.write(`account:${account}`, async (tx) => {
    let known = await readRoute(tx, account);
    const observations: Observation[] = [];
    for (const route of routes) {
      const { observation, next } = observedRoute(knownRoute(network, route), known);
      observations.push(observation);
      if (next === undefined) continue;
      await storeRoute(tx, account, next, { known, relayId: identity.relayId, now: clock.now() });
      known = next;
    }
    const current = routes.findLast(
      (_, index) => observations[index] === 'accepted' || observations[index] === 'same',
    );
    const isOther = current?.relay_id !== identity.relayId && known?.conflict === false;
    // A route that is lower than another of the same answers was accepted for a moment only.
    if (current !== undefined && isOther && current.revision === known?.revision) {
      await holdRoute(tx, current, hold);
    }
    return observations;
  });
  // Repeats, which other relays send at intervals, give the jobs nothing to do.
  if (observations.includes('accepted') || observations.includes('conflict')) {
    wakeRouteJobs(context);
  }
  return observations;
}

/**
 * Reads the account's route that may be given to others: the one of highest revision, unexpired and
 * without a conflict (07 §B7, §B11).
 *
 * @returns Canonical JSON of the final document
 */
export async function readUsableRoute(
  tx: Reader,
  account: string,
  now: number,
): Promise<string | undefined> {
  const known = await readRoute(tx, account);
  return known === undefined || known.conflict || now >= known.heldUntil ? undefined : known.text;
}

/** Tells whether a route of the account was ever verified here, which is stored for good. */
export async function isAccountKnown(tx: Reader, account: string): Promise<boolean> {
  return (await readKnownHome(tx, account)) !== undefined;
}

/** Makes the stored form of a verified final route. */
export function knownRoute(network: Network, route: FinalRoute): KnownRoute {
  return {
    revision: route.revision,
    content: digest(routeContent(network, route)),
    relayId: route.relay_id,
    expiresAt: route.expires_at,
    heldUntil: route.expires_at,
    conflict: false,
    text: canonicalJson(route),
  };
}
