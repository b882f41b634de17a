/** Asking other relays about one account at home here, and correcting those that name themselves. */
import type { FinalRoute } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { RelayContext, RouteLookup } from '../context.ts';
import { confirmHome, confirmHomeWith } from './home.ts';
import { addAnnouncement } from './own-route-store.ts';
import { readRoute } from './store.ts';

/**
 * Asks the network for a higher route of an account that is at home here. A relay that still takes
 * itself for the account's home is sent the route (07 §B12).
 *
 * @param only asks this relay alone
 * @returns with the relays that gave no answer: they may know a higher route
 * @throws ProtocolError `rate_limited` if too many lookups are under way
 */
export async function confirmOwnRoute(
  context: RelayContext,
  account: string,
  only?: string,
): Promise<RouteLookup> {
  const found =
    only === undefined
      ? await confirmHome(context, account)
      : await confirmHomeWith(context, only, account);
  if (found.home.kind === 'local') {
    for (const relayId of found.claimed) await correct(context, account, relayId);
  }
  return found;
}

/** Sends a relay the account's route; if it does not store it, it is sent the route again later. */
async function correct(context: RelayContext, account: string, relayId: string): Promise<void> {
  const { clock, identity, limits, routeDirectory, storage } = context;
  const known = await storage.read((tx) => readRoute(tx, account));
  if (known?.relayId !== identity.relayId) return;
  const route = parseJson(known.text) as unknown as FinalRoute;
  if ((await routeDirectory.replicate(route, relayId, [])).reachedLeaving) return;
  const announcement = { relayId, at: clock.now() + limits.remoteRetryFirst };
  await storage.write(`account:${account}`, (tx) => addAnnouncement(tx, route, announcement));
}
