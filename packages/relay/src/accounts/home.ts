import { type FinalRoute, type Network, routeContent } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Home, RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { Reader } from '../storage/types.ts';
import { homeFrom, observedRoute } from './rules.ts';
import { type KnownRoute, readKnownHome, readRoute, writeRoute } from './store.ts';

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
  /** Asks the directory even if a valid route elsewhere is known (04 section 16.2). */
  readonly refresh?: boolean;
}

/**
 * Determines an account's home, asking the route directory if storage does not have it. Routes from
 * the directory are stored, so that revisions and conflicts hold for good (03 section 3.4).
 */
export async function locate(
  context: RelayContext,
  account: string,
  { now, refresh = false }: LocateOptions,
): Promise<Home> {
  const { storage, identity, routeDirectory } = context;
  const stored = await storage.read((tx) => homeOf(tx, account, identity.relayId, now));
  if (stored.kind === 'local' || (stored.kind === 'elsewhere' && !refresh)) return stored;
  const found = await routeDirectory.resolveRemote(account);
  const usable = found.filter(
    (route) =>
      route.account === account &&
      route.updated_at - now <= context.limits.futureTolerance &&
      now < route.expires_at,
  );
  if (usable.length === 0) return stored;
  return await storage.write(`account:${account}`, async (tx) => {
    let known = await readRoute(tx, account);
    for (const route of usable) {
      const changed = observedRoute(knownRoute(context.network, route), known);
      if (changed === undefined) continue;
      await writeRoute(tx, account, changed);
      known = changed;
    }
    return homeFrom(known, identity.relayId, now);
  });
}

/** Makes the stored form of a verified final route. */
export function knownRoute(network: Network, route: FinalRoute): KnownRoute {
  return {
    revision: route.revision,
    content: digest(routeContent(network, route)),
    relayId: route.relay_id,
    expiresAt: route.expires_at,
    conflict: false,
    text: canonicalJson(route),
  };
}
