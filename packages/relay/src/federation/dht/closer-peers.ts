import {
  compareDistance,
  dhtPosition,
  encodeMultiaddr,
  type KadPeer,
  positionDistance,
} from '@posthouse/protocol/federation';
import type { RelayContext } from '../../context.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';

/**
 * Returns the eligible peers nearest to a key, as an answer names them (07 §B7).
 *
 * @param asking the peer that gets the answer, which is left out
 */
export function closerPeers(
  { network, limits }: Pick<RelayContext, 'network' | 'limits'>,
  peers: readonly EligiblePeer[],
  { key, asking }: { readonly key: Uint8Array; readonly asking: EligiblePeer },
): KadPeer[] {
  const { primitives } = network;
  // A key of FIND_NODE may have up to 1 MiB.
  const target = dhtPosition(primitives, key);
  return peers
    .filter(({ relayId }) => relayId !== asking.relayId)
    .map((peer) => {
      const distance = positionDistance(target, dhtPosition(primitives, peer.peerId));
      return { peer, distance };
    })
    .sort((a, b) => compareDistance(a.distance, b.distance))
    .slice(0, limits.dhtCloserPeers)
    .map(({ peer: { peerId, addresses } }) => ({
      id: peerId,
      addrs: addresses.slice(0, limits.peerAddresses).map((address) => encodeMultiaddr(address)),
    }));
}
