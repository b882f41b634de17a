import { encodeMultiaddr, type KadPeer } from '@posthouse/protocol/federation';
import type { RelayContext } from '../../context.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import type { DhtTable } from './table.ts';

/**
 * Returns the relays of the routing table nearest to a key, as an answer names them (07 §B7).
 *
 * @param asking the peer that gets the answer, which is left out
 */
export function closerPeers(
  { limits }: Pick<RelayContext, 'limits'>,
  table: Pick<DhtTable, 'closest'>,
  { key, asking }: { readonly key: Uint8Array; readonly asking: EligiblePeer },
): KadPeer[] {
  return table
    .closest(key, limits.dhtCloserPeers + 1)
    .filter(({ relayId }) => relayId !== asking.relayId)
    .slice(0, limits.dhtCloserPeers)
    .map(({ peerId, addresses }) => ({
      id: peerId,
      addrs: addresses.slice(0, limits.peerAddresses).map((address) => encodeMultiaddr(address)),
    }));
}
