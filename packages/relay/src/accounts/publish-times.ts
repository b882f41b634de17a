/** When routes are sent to other relays again (07 §B12). */
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';

/** The share of the interval by which a route may be sent earlier. */
const spread = 0.2;

type Parts = Pick<RelayContext, 'identity' | 'limits'>;

/**
 * Returns the seconds after which the home relay sends a route again: an interval, or up to a fifth
 * less. It depends on the account alone, so that what was stored together spreads in time.
 */
export function publishDelay({ limits }: Parts, account: string): number {
  return Math.round(limits.ownRouteCheck * (1 - spread * share(account)));
}

/** Returns the seconds after which, at the earliest, any route is sent again that is stored now. */
export function shortestDelay({ ownRouteCheck }: RelayContext['limits']): number {
  return Math.max(1, Math.floor(ownRouteCheck * (1 - spread)));
}

/**
 * Returns the seconds after which a relay sends on the route of an account at home elsewhere, if it
 * was not sent it again: longer than the home relay's longest interval, and not at the same time as
 * other relays, whose routes make it wait again.
 */
export function offerDelay({ identity, limits }: Parts, account: string): number {
  return Math.round(limits.ownRouteCheck * (1.25 + 0.25 * share(`${identity.relayId} ${account}`)));
}

/** A number from 0 up to 1 that is always the same for a text. */
function share(text: string): number {
  const [high = 0, low = 0] = Buffer.from(digest(text), 'base64url');
  return (high * 256 + low) / 65_536;
}
