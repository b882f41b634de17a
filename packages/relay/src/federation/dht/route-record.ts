/** Account routes as records of the DHT, and their validation (07 §B7, §B10). */
import {
  badRequest,
  checkRoute,
  type FinalRoute,
  ProtocolError,
  routeSignatures,
} from '@posthouse/protocol';
import { deriveRouteKey } from '@posthouse/protocol/federation';
import { canonicalJson, decodeUtf8, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import type { Eligibility } from '../eligibility.ts';

type Reading = Pick<RelayContext, 'network' | 'clock' | 'limits'>;

/**
 * Reads the route of a record: everything that is checked without signatures (07 §B10, rules 1 to 4
 * and 7).
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, JsonError: the record is invalid;
 *   `clock_skew`, `stale_state`: it is not valid now by this relay's clock
 */
export function readRouteRecord(
  reading: Reading,
  record: { readonly key: Uint8Array; readonly value: Uint8Array },
): FinalRoute {
  const route = parseRouteRecord(reading, record);
  checkRouteTimes(reading, route);
  return route;
}

/**
 * Reads the route of a record, whatever its times are (07 §B10, rules 1 to 4).
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, JsonError: the record is invalid
 */
export function parseRouteRecord(
  { network, limits }: Pick<Reading, 'network' | 'limits'>,
  { key, value }: { readonly key: Uint8Array; readonly value: Uint8Array },
): FinalRoute {
  if (value.length > limits.dhtValueBytes) {
    throw new ProtocolError('request_too_large', 'the record is too large');
  }
  const route = parseJson(decodeUtf8(value));
  checkRoute(network, route);
  if (Buffer.compare(deriveRouteKey(network, route.account), key) !== 0) {
    throw badRequest('account', 'does not derive the key of the record');
  }
  return route;
}

/**
 * Refuses a route that is not valid now by this relay's clock (07 §B10, rule 7).
 * @throws ProtocolError `clock_skew`, `stale_state`
 */
export function checkRouteTimes(
  { clock, limits }: Pick<Reading, 'clock' | 'limits'>,
  route: FinalRoute,
): void {
  const now = clock.now();
  if (route.updated_at - now > limits.futureTolerance) {
    throw new ProtocolError('clock_skew', 'updated_at is too far ahead');
  }
  if (now >= route.expires_at) throw new ProtocolError('stale_state', 'the route has expired');
}

/**
 * Verifies both signatures of a route and that its relay is active (07 §B10, rules 5 and 6). A text
 * that verified before is not verified again.
 *
 * @param cause the relay that sent the route, charged for registry reads; undefined for own jobs
 * @throws PeerRefusal if the named relay cannot be confirmed; ProtocolError `invalid_signature`
 */
export async function verifyRouteRecord(
  context: Pick<RelayContext, 'network' | 'verifier'>,
  eligibility: Pick<Eligibility, 'verifyRouteRelay'>,
  { route, cause }: { readonly route: FinalRoute; readonly cause: string | undefined },
): Promise<void> {
  const { network, verifier } = context;
  const relayPublicKey = await eligibility.verifyRouteRelay(route.relay_id, cause);
  const checks = () => routeSignatures(network, route, relayPublicKey);
  await verifier.verifyOnce(canonicalJson(route), checks, 'route');
}
