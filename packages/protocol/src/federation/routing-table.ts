/**
 * The Kademlia buckets of a relay (chapter 07, sections B5 and B8). Which peers are eligible is
 * decided by the caller; relay ID and Peer ID stay one-to-one.
 */
import type { Primitives, Random } from '../crypto/primitives.ts';
import { hex } from '../encoding/bytes.ts';
import { compareNearness, dhtPosition } from './keyspace.ts';

/** Deepest bucket for which inputs are drawn: a draw lands in bucket `n` once in 2^(n+1) times. */
const deepestDrawn = 12;

/** A peer of the table, with whatever the caller stores in addition. */
export interface RoutingEntry {
  readonly relayId: string;
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
}

/**
 * What became of an insertion:
 * - `added`, or `known`: the entry replaces the one of the same pair and counts as seen just now;
 * - `full`: its bucket has no room, see {@link RoutingTable.leastRecent};
 * - `conflict`: its relay ID or its Peer ID is in the table with another partner, which must be
 *   removed first (B5);
 * - `self`: the table's own Peer ID.
 */
export type InsertResult = 'added' | 'known' | 'full' | 'conflict' | 'self';

interface Slot<E> {
  readonly entry: E;
  readonly position: Uint8Array;
  readonly bucket: number;
}

/**
 * A routing table of 256 buckets: bucket `n` has peers whose position shares the first `n` bits with
 * the own position.
 *
 * @example
 * const [self, other] = peers as [Uint8Array, Uint8Array];
 * const table = new RoutingTable(primitives, { self, bucketSize: 20 });
 * table.insert({ relayId, peerId: other }); // 'added'
 * const nearest = table.closest(deriveRouteKey(network, account), 20);
 */
export class RoutingTable<E extends RoutingEntry = RoutingEntry> {
  readonly #primitives: Primitives;
  readonly #self: Uint8Array;
  readonly #bucketSize: number;
  /** By Peer ID in hex; in each bucket the peer seen least recently comes first. */
  readonly #slots = new Map<string, Slot<E>>();
  /** Peer ID in hex by relay ID. */
  readonly #peers = new Map<string, string>();
  readonly #sizes = new Map<number, number>();

  /** @param options own Peer ID as multihash bytes, and the most peers of one bucket */
  constructor(
    primitives: Primitives,
    options: { readonly self: Uint8Array; readonly bucketSize: number },
  ) {
    this.#primitives = primitives;
    this.#self = dhtPosition(primitives, options.self);
    this.#bucketSize = options.bucketSize;
  }

  /** Number of peers. */
  get size(): number {
    return this.#slots.size;
  }

  /** Returns the entry of a relay, if it is in the table. */
  ofRelay(relayId: string): E | undefined {
    return this.#slots.get(this.#peers.get(relayId) ?? '')?.entry;
  }

  /** Inserts a peer that was seen just now. Only the results `added` and `known` change the table. */
  insert(entry: E): InsertResult {
    const id = hex(entry.peerId);
    const position = dhtPosition(this.#primitives, entry.peerId);
    const bucket = sharedBits(this.#self, position);
    if (bucket === 256) return 'self';
    const known = this.#slots.get(id);
    if (known?.entry.relayId !== entry.relayId) {
      if (known !== undefined || this.#peers.has(entry.relayId)) return 'conflict';
      const size = this.#sizes.get(bucket) ?? 0;
      if (size >= this.#bucketSize) return 'full';
      this.#sizes.set(bucket, size + 1);
      this.#peers.set(entry.relayId, id);
    }
    // Deleted first, so that the peer moves to the end of the order.
    this.#slots.delete(id);
    this.#slots.set(id, { entry, position, bucket });
    return known === undefined ? 'added' : 'known';
  }

  /** Removes a relay's peer; returns whether it was in the table. */
  remove(relayId: string): boolean {
    const id = this.#peers.get(relayId);
    const slot = this.#slots.get(id ?? '');
    if (id === undefined || slot === undefined) return false;
    this.#peers.delete(relayId);
    this.#slots.delete(id);
    this.#sizes.set(slot.bucket, (this.#sizes.get(slot.bucket) ?? 0) - 1);
    return true;
  }

  /**
   * Returns the peer seen least recently of the bucket that a Peer ID belongs to: if it does not
   * answer any more, it makes room.
   */
  leastRecent(peerId: Uint8Array): E | undefined {
    const bucket = sharedBits(this.#self, dhtPosition(this.#primitives, peerId));
    for (const slot of this.#slots.values()) if (slot.bucket === bucket) return slot.entry;
    return undefined;
  }

  /**
   * Returns up to `count` peers in order of their distance to a lookup input, nearest first.
   *
   * @param raw a resource key, or the multihash bytes of a Peer ID
   */
  closest(raw: Uint8Array, count: number): E[] {
    const target = dhtPosition(this.#primitives, raw);
    return [...this.#slots.values()]
      .sort((a, b) => compareNearness(target, a.position, b.position))
      .slice(0, count)
      .map(({ entry }) => entry);
  }

  /**
   * Returns lookup inputs that refresh the buckets from 0 up to `depth`, not included: at most one
   * for each, by bucket. Inputs are drawn at random, because a position cannot be chosen, so a deep
   * bucket stays without one; a lookup of the own Peer ID refreshes the deepest buckets.
   */
  refreshInputs(random: Random, depth: number): Map<number, Uint8Array> {
    const inputs = new Map<number, Uint8Array>();
    const buckets = Math.min(depth, deepestDrawn + 1);
    const draws = 4 * 2 ** buckets;
    for (let draw = 0; draw < draws && inputs.size < buckets; draw += 1) {
      const raw = random(32);
      const bucket = sharedBits(this.#self, dhtPosition(this.#primitives, raw));
      if (bucket < buckets && !inputs.has(bucket)) inputs.set(bucket, raw);
    }
    return inputs;
  }
}

/** Counts the leading bits that two positions share, up to 256. */
function sharedBits(a: Uint8Array, b: Uint8Array): number {
  for (let index = 0; index < a.length; index += 1) {
    const difference = (a[index] as number) ^ (b[index] as number);
    if (difference !== 0) return index * 8 + Math.clz32(difference) - 24;
  }
  return a.length * 8;
}
