/** Keys, positions and distances of the relay DHT (07 §B8). */
import type { Primitives } from '../crypto/primitives.ts';
import type { Network } from '../identity/network.ts';

/**
 * Returns the bytes whose digest is an account route's key: network-bound JSON, never transmitted.
 */
export function routeKeyInput(network: Network, account: string): Uint8Array {
  return network.bytes({
    $type: network.type('dht.resource.account.route'),
    resource_id: account,
  });
}

/**
 * Derives the DHT key of an account's route, 32 bytes: the same for every version of the route. It
 * is sent as it is; only {@link dhtPosition} maps it once more.
 *
 * @example
 * const key = deriveRouteKey(network, account);
 */
export function deriveRouteKey(network: Network, account: string): Uint8Array {
  return network.primitives.sha256(routeKeyInput(network, account));
}

/**
 * Maps a raw lookup input to its position in the key space, 32 bytes. Resource keys are mapped like
 * Peer IDs, although they are digests already.
 *
 * @param raw a resource key, or the multihash bytes of a Peer ID
 * @example
 * const position = dhtPosition(primitives, deriveRouteKey(network, account));
 */
export function dhtPosition(primitives: Primitives, raw: Uint8Array): Uint8Array {
  return primitives.sha256(raw);
}

/**
 * Computes the distance between two positions, 32 bytes, big-endian. If many peers are compared with
 * one lookup input, the input, which may have up to a megabyte, is mapped to its position once.
 *
 * @example
 * const target = dhtPosition(primitives, deriveRouteKey(network, account));
 * const distances = peers.map((each) => positionDistance(target, dhtPosition(primitives, each)));
 */
export function positionDistance(a: Uint8Array, b: Uint8Array): Uint8Array {
  const distance = new Uint8Array(a.length);
  for (let index = 0; index < a.length; index += 1) {
    distance[index] = (a[index] as number) ^ (b[index] as number);
  }
  return distance;
}

/**
 * Computes the distance between a lookup input and a peer, 32 bytes, big-endian; zero for the same
 * raw bytes.
 *
 * @param raw a resource key, or the multihash bytes of a Peer ID
 * @param peer multihash bytes of a Peer ID
 * @example
 * const peerId = parsePeerId(text);
 * if (peerId !== undefined) dhtDistance(primitives, deriveRouteKey(network, account), peerId);
 */
export function dhtDistance(primitives: Primitives, raw: Uint8Array, peer: Uint8Array): Uint8Array {
  return positionDistance(dhtPosition(primitives, raw), dhtPosition(primitives, peer));
}

/**
 * Compares two positions by their distance to a third one, for sorting: negative if `a` is nearer.
 *
 * @example
 * const target = dhtPosition(primitives, key);
 * const positions = peers.map((each) => dhtPosition(primitives, each));
 * positions.sort((a, b) => compareNearness(target, a, b));
 */
export function compareNearness(target: Uint8Array, a: Uint8Array, b: Uint8Array): number {
  for (let index = 0; index < target.length; index += 1) {
    const at = target[index] as number;
    const difference = ((a[index] as number) ^ at) - ((b[index] as number) ^ at);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * Compares two distances for sorting: negative if `a` is nearer.
 *
 * @example
 * const distances = peers.map((each) => dhtDistance(primitives, key, each)).sort(compareDistance);
 */
export function compareDistance(a: Uint8Array, b: Uint8Array): number {
  for (let index = 0; index < a.length; index += 1) {
    const difference = (a[index] as number) - (b[index] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}
