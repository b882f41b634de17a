/** The eligible set: admitted relays, one Peer ID for each relay ID (07 §B5). */
import { formatPeerId } from '@posthouse/protocol/federation';
import type { RelayContext } from '../context.ts';
import { peerDropped } from '../observability/events.ts';
import { PeerRefusal } from './peer-refusal.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

/** Why a relay lost its admission. A label of metrics: a closed set. */
export type DropReason =
  /** The registry lists it as disabled or suspended, or not at all. */
  | 'not_active'
  | 'registry_unavailable'
  | 'descriptor_expired'
  | 'descriptor_invalid'
  | 'peer_id_changed'
  | 'blocked'
  | 'misbehaviour'
  /** Another process of this relay dropped it. */
  | 'other_process';

/** Adds the relay to a table, or its newer descriptor. Must not throw. */
export type EnterListener = (peer: EligiblePeer) => void;

/** Closes the relay's connections, and removes it from tables of its own. Must not throw. */
export type DropListener = (peer: EligiblePeer, reason: DropReason) => void;

type Parts = Pick<RelayContext, 'clock' | 'identity' | 'limits' | 'log' | 'metrics'>;

export class PeerSet {
  readonly #parts: Parts;
  readonly #peers = new Map<string, EligiblePeer>();
  /** Relay IDs by the text of the Peer ID. */
  readonly #relays = new Map<string, string>();
  readonly #listeners = new Set<DropListener>();
  readonly #enterListeners = new Set<EnterListener>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Returns an admitted relay whose descriptor has not expired. */
  find(relayId: string): EligiblePeer | undefined {
    const peer = this.get(relayId);
    return peer !== undefined && this.isCurrent(peer) ? peer : undefined;
  }

  /** Returns the admitted relay with a Peer ID whose descriptor has not expired. */
  findPeer(peerId: Uint8Array): EligiblePeer | undefined {
    return this.find(this.#relays.get(formatPeerId(peerId)) ?? '');
  }

  /** Returns a relay that was admitted and not dropped, also if its descriptor expired since. */
  get(relayId: string): EligiblePeer | undefined {
    return this.#peers.get(relayId);
  }

  /** Returns every admitted relay whose descriptor has not expired, connected or not. */
  all(): readonly EligiblePeer[] {
    return this.entries().filter((peer) => this.isCurrent(peer));
  }

  /** Returns every relay that was admitted and not dropped, for the jobs that check them. */
  entries(): readonly EligiblePeer[] {
    return [...this.#peers.values()];
  }

  isCurrent({ descriptor }: EligiblePeer): boolean {
    return this.#parts.clock.now() < descriptor.expires_at;
  }

  /**
   * Adds an authenticated relay, or replaces its descriptor.
   *
   * @returns whether it was not in the set
   * @throws PeerRefusal `peer_id_taken`, `peer_id_changed` if the relay is in the set with another
   *   Peer ID, which must be dropped first, or `full`
   */
  enter(peer: EligiblePeer): boolean {
    const { relayId } = peer;
    this.requireOneToOne(peer);
    const known = this.#peers.get(relayId);
    const peerId = formatPeerId(peer.peerId);
    if (known !== undefined && formatPeerId(known.peerId) !== peerId) {
      throw new PeerRefusal('peer_id_changed', 'the relay is known by another Peer ID');
    }
    if (known === undefined && this.#peers.size >= this.#parts.limits.federationPeers) {
      throw new PeerRefusal('full', 'as many relays are admitted as the limit allows');
    }
    this.#peers.set(relayId, peer);
    this.#relays.set(peerId, relayId);
    for (const listener of [...this.#enterListeners]) listener(peer);
    return known === undefined;
  }

  /** @throws PeerRefusal `peer_id_taken` if another relay, or this one, has the Peer ID */
  requireOneToOne({ relayId, peerId }: EligiblePeer): void {
    const text = formatPeerId(peerId);
    const holder = this.#relays.get(text);
    const isOwn = text === this.#parts.identity.peerId;
    if (isOwn || (holder !== undefined && holder !== relayId)) {
      throw new PeerRefusal('peer_id_taken', 'another relay has this Peer ID');
    }
  }

  /** Removes a relay; its connections close at once. A relay that is not in the set is ignored. */
  drop(relayId: string, reason: DropReason): void {
    const peer = this.#peers.get(relayId);
    if (peer === undefined) return;
    this.#peers.delete(relayId);
    this.#relays.delete(formatPeerId(peer.peerId));
    peerDropped(this.#parts, { relay: relayId, reason });
    for (const listener of [...this.#listeners]) listener(peer, reason);
  }

  onEnter(listener: EnterListener): Disposable {
    this.#enterListeners.add(listener);
    return { [Symbol.dispose]: () => void this.#enterListeners.delete(listener) };
  }

  onDrop(listener: DropListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
