/** Digests that link the events of the management chain (05 §3.3). */
import type { Network } from '../identity/network.ts';
import type { JsonObject } from '../json/types.ts';

/**
 * Returns the management digest of a chain event's payload, signature and unknown members included;
 * the next event's `prev_hash`. Outer members of the event take no part (05 §3.3).
 *
 * @returns `sha256:` and 43 characters
 * @example
 * managementHash(network, event.payload); // 'sha256:…'
 */
export function managementHash(network: Network, payload: JsonObject): string {
  return network.hash(payload);
}
