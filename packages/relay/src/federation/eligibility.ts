/** The one gate that admits other relays (07 §B4, §B5). */
import { addressKey } from '@posthouse/peer';
import {
  checkSchema,
  type RelayDescriptor,
  type RelayEntry,
  RelayId,
  Type,
} from '@posthouse/protocol';
import { formatPeerId } from '@posthouse/protocol/federation';
import type { JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { peerAdmitted, peerRefused } from '../observability/events.ts';
import { isBlocked } from './block-store.ts';
import type { Descriptors, FetchReason, KnownDescriptor } from './descriptors.ts';
import type { PeerFaults } from './peer-faults.ts';
import { PeerRefusal } from './peer-refusal.ts';
import type { DropListener, DropReason, EnterListener, PeerSet } from './peer-set.ts';
import type { KeptRegistry } from './registry/kept-registry.ts';
import {
  type EligiblePeer,
  parseDescriptor,
  peerOf,
  verifyAgainstRecord,
} from './verify-descriptor.ts';

type Context = Pick<
  RelayContext,
  'network' | 'clock' | 'limits' | 'identity' | 'storage' | 'verifier' | 'jobs' | 'log' | 'metrics'
>;

/** What a handshake proved: the Peer ID. The descriptor is text of the other side. */
export interface RemotePeer {
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
  readonly descriptor: string;
  /** IP address of the other side. */
  readonly address: string;
  readonly direction: 'inbound' | 'outbound';
}

/** What the dialler knows of the relay that it dialled. */
export interface ExpectedPeer {
  readonly relayId?: string;
  readonly peerId?: Uint8Array;
}

export interface EligibilityParts {
  readonly registry: KeptRegistry;
  readonly descriptors: Descriptors;
  readonly peers: PeerSet;
  readonly faults: Pick<PeerFaults, 'isRefused'>;
}

/** The part of a descriptor that is read before it is verified. */
const Identified = Type.Object({ relay_id: RelayId });

/** Name of the job that fetches descriptors again. */
export const descriptorsJobName = 'federation.descriptors';

/** Admits relays, and finds those that can be dialled. */
export class Eligibility {
  readonly #context: Context;
  readonly #registry: KeptRegistry;
  readonly #descriptors: Descriptors;
  readonly #peers: PeerSet;
  readonly #faults: Pick<PeerFaults, 'isRefused'>;

  constructor(context: Context, { registry, descriptors, peers, faults }: EligibilityParts) {
    this.#context = context;
    this.#registry = registry;
    this.#descriptors = descriptors;
    this.#peers = peers;
    this.#faults = faults;
  }

  /** Returns a relay that is eligible now, connected or not. */
  find(relayId: string): EligiblePeer | undefined {
    return this.#peers.find(relayId);
  }

  /** Returns the relay with a Peer ID that is eligible now, connected or not. */
  findPeer(peerId: Uint8Array): EligiblePeer | undefined {
    return this.#peers.findPeer(peerId);
  }

  /** Returns every relay that is eligible now, connected or not. */
  all(): readonly EligiblePeer[] {
    return this.#peers.all();
  }

  /** Returns the IDs of the other relays that the registry lists as active, to dial them. */
  candidates(): string[] {
    const { relayId } = this.#context.identity;
    return this.#registry.activeRelays().filter((id) => id !== relayId);
  }

  /** Removes a relay from the eligible set; its connections close at once. */
  drop(relayId: string, reason: DropReason): void {
    this.#peers.drop(relayId, reason);
  }

  /** Calls a listener for each relay that is admitted, and for its newer descriptors. */
  onEnter(listener: EnterListener): Disposable {
    return this.#peers.onEnter(listener);
  }

  /** Calls a listener for each relay that loses its admission. */
  onDrop(listener: DropListener): Disposable {
    return this.#peers.onDrop(listener);
  }

  /**
   * Admits the relay at the other end of a connection. Called after its signature of the Noise key
   * verified and before any stream exists; the connection must close if this rejects (07 §B4).
   *
   * @param expected what the dialler knows; nothing for an inbound connection
   * @throws PeerRefusal with the first check that failed; ProtocolError `temporarily_unavailable`
   *   if storage or verification are not available; the signal's reason
   */
  async admit(
    remote: RemotePeer,
    expected: ExpectedPeer,
    signal: AbortSignal,
  ): Promise<EligiblePeer> {
    const { address, direction } = remote;
    try {
      const peer = await this.#authenticate(remote, expected, signal);
      const isNew = this.#peers.enter(peer);
      if (isNew) peerAdmitted(this.#context, { relay: peer.relayId, address, direction });
      this.#context.jobs.wake(descriptorsJobName);
      return peer;
    } catch (error) {
      if (error instanceof PeerRefusal) {
        peerRefused(this.#context, { check: error.check, address, error });
      }
      throw error;
    }
  }

  /**
   * Finds the Peer ID and the addresses of a relay by its registry record and descriptor, to dial
   * it. It is not eligible before {@link admit}.
   *
   * @param options.isFresh after all its addresses failed: reads the record and fetches the
   *   descriptor again
   * @param options.cause the address or relay that caused the question; limits its registry reads
   * @throws PeerRefusal with the check that failed
   */
  async candidate(
    relayId: string,
    options: { readonly isFresh?: boolean; readonly cause?: string } = {},
  ): Promise<EligiblePeer> {
    const { isFresh = false, cause } = options;
    await this.#requireNotRefused(relayId);
    const admitted = this.#peers.find(relayId);
    if (admitted !== undefined && !isFresh) return admitted;
    if (isFresh) this.#registry.expire(relayId);
    const entry = await this.#activeRecord(relayId, cause);
    const known = await this.#descriptor(entry, isFresh ? 'forced' : 'regular');
    const peer = peerOf(known.descriptor);
    this.#peers.requireOneToOne(peer);
    this.#requireStillActive(relayId);
    this.updateDescriptor(known.descriptor);
    return peer;
  }

  /**
   * Returns the public key that signs routes for a relay (07 §B10, check 6): its record is active,
   * and a verified current descriptor has the key.
   *
   * @param cause the address or relay that sent the route; limits its registry reads
   * @returns compressed P-256 key, base64url
   * @throws PeerRefusal with the check that failed
   */
  async verifyRouteRelay(relayId: string, cause?: string): Promise<string> {
    const entry = await this.#activeRecord(relayId, cause);
    const { identity } = this.#context;
    if (relayId === identity.relayId) return identity.publicKey;
    const { descriptor } = await this.#descriptor(entry, 'regular');
    return descriptor.public_key;
  }

  /**
   * Replaces the descriptor of an admitted relay by a newer verified one. If that binds another Peer
   * ID, the relay is dropped and may come back with the new one (07 §B5).
   */
  updateDescriptor(descriptor: RelayDescriptor): void {
    const relayId = descriptor.relay_id;
    const known = this.#peers.get(relayId);
    if (known === undefined) return;
    const peer = peerOf(descriptor);
    if (isSamePeer(known.peerId, peer.peerId)) this.#peers.enter(peer);
    else this.#peers.drop(relayId, 'peer_id_changed');
  }

  /** The checks of 07 §B4 in their order. */
  async #authenticate(
    remote: RemotePeer,
    expected: ExpectedPeer,
    signal: AbortSignal,
  ): Promise<EligiblePeer> {
    if (expected.peerId !== undefined && !isSamePeer(expected.peerId, remote.peerId)) {
      throw new PeerRefusal('peer_id_expected', 'the Peer ID is not the one that was dialled');
    }
    const value = parseDescriptor(this.#context, remote.descriptor);
    const relayId = relayIdOf(value);
    if (expected.relayId !== undefined && expected.relayId !== relayId) {
      throw new PeerRefusal('relay_id_expected', 'the relay is not the one that was dialled');
    }
    await this.#requireNotRefused(relayId);
    // A dial of a relay that we chose is our own need; every other read is on the other side.
    const isOwnNeed = remote.direction === 'outbound' && expected.relayId !== undefined;
    const cause = isOwnNeed ? undefined : addressKey(remote.address);
    const entry = await this.#activeRecord(relayId, cause);
    signal.throwIfAborted();
    try {
      const descriptor = await verifyAgainstRecord(this.#context, value, entry);
      const peer = await this.#bound(entry, descriptor, remote.peerId);
      signal.throwIfAborted();
      this.#requireStillActive(relayId);
      this.#requireFewFaults(relayId);
      return peer;
    } catch (error) {
      if (error instanceof PeerRefusal) this.#registry.expire(relayId);
      throw error;
    }
  }

  /**
   * Binds a relay to the Peer ID of the handshake. If the relay is known by another one, the
   * descriptor of its registered endpoint decides, and the old one leaves first (07 §B5).
   */
  async #bound(
    entry: RelayEntry,
    descriptor: RelayDescriptor,
    peerId: Uint8Array,
  ): Promise<EligiblePeer> {
    const peer = peerOf(descriptor);
    if (!isSamePeer(peer.peerId, peerId)) {
      throw new PeerRefusal('peer_id_bound', 'the descriptor binds another Peer ID');
    }
    this.#peers.requireOneToOne(peer);
    const { relay_id: relayId } = entry;
    const admitted = this.#peers.get(relayId);
    if (admitted === undefined || isSamePeer(admitted.peerId, peerId)) {
      const kept = peerOf((await this.#descriptors.offer(entry, descriptor)).descriptor);
      // What the registered endpoint gave before may bind another one.
      if (isSamePeer(kept.peerId, peerId)) return kept;
    }
    const fetched = await this.#confirmed(entry, peerId);
    const old = this.#peers.get(relayId);
    if (old !== undefined && !isSamePeer(old.peerId, peerId)) {
      this.#peers.drop(relayId, 'peer_id_changed');
    }
    return peerOf(fetched.descriptor);
  }

  async #confirmed(entry: RelayEntry, peerId: Uint8Array): Promise<KnownDescriptor> {
    let fetched: KnownDescriptor;
    try {
      fetched = await this.#descriptors.fetch(entry, 'forced');
    } catch (error) {
      if (!(error instanceof PeerRefusal)) throw error;
      throw new PeerRefusal('peer_id_changed', 'the new Peer ID could not be confirmed', {
        cause: error,
      });
    }
    if (isSamePeer(peerOf(fetched.descriptor).peerId, peerId)) return fetched;
    throw new PeerRefusal('peer_id_changed', 'the registered endpoint has another Peer ID');
  }

  async #descriptor(entry: RelayEntry, reason: FetchReason): Promise<KnownDescriptor> {
    const known = reason === 'regular' ? await this.#descriptors.find(entry) : undefined;
    return known ?? (await this.#descriptors.fetch(entry, reason));
  }

  async #requireNotRefused(relayId: string): Promise<void> {
    const { clock, identity, storage } = this.#context;
    if (relayId === identity.relayId) throw new PeerRefusal('own_relay', 'it is this relay');
    this.#requireFewFaults(relayId);
    if (!(await storage.read((tx) => isBlocked(tx, relayId, clock.now())))) return;
    throw new PeerRefusal('blocked', 'the operator blocked the relay');
  }

  #requireFewFaults(relayId: string): void {
    if (!this.#faults.isRefused(relayId)) return;
    throw new PeerRefusal('misbehaved', 'the relay sent too many invalid messages');
  }

  async #activeRecord(relayId: string, cause: string | undefined): Promise<RelayEntry> {
    return requireActive(await this.#registry.current(relayId, cause));
  }

  /** Checks once more, right before the effect: the registry may have changed meanwhile. */
  #requireStillActive(relayId: string): void {
    requireActive(this.#registry.peek(relayId));
  }
}

function requireActive(entry: RelayEntry | undefined): RelayEntry {
  if (entry === undefined) throw new PeerRefusal('not_listed', 'the registry does not list it');
  if (entry.status === 'active') return entry;
  throw new PeerRefusal('not_active', `the registry lists it as ${entry.status}`);
}

/** @throws PeerRefusal `descriptor_malformed` if the ID is missing or not canonical (07 §A2) */
function relayIdOf(value: JsonValue): string {
  try {
    checkSchema(Identified, value);
    return value.relay_id;
  } catch (error) {
    throw new PeerRefusal('descriptor_malformed', 'relay_id is missing or not canonical', {
      cause: error,
    });
  }
}

function isSamePeer(one: Uint8Array, other: Uint8Array): boolean {
  return formatPeerId(one) === formatPeerId(other);
}
