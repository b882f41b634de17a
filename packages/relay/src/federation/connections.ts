import {
  type PeerConnection,
  PeerError,
  type PeerHost,
  type PeerStream,
  type RemotePeer,
  rejectOnAbort,
} from '@posthouse/peer';
import { hex, type Libp2pAddress } from '@posthouse/protocol';
import type { KadCandidate } from '@posthouse/protocol/federation';
import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import { peerConnected, peerDisconnected } from '../observability/peer-events.ts';
import type { AddressFilter } from './address-filter.ts';
import { connectionsJobName } from './connections-job.ts';
import type { Eligibility, ExpectedPeer } from './eligibility.ts';
import { finishStream } from './finish-stream.ts';
import { PeerRefusal } from './peer-refusal.ts';
import { dhtProtocol, rpcProtocol } from './protocol-ids.ts';
import type { RelayHealth } from './relay-health.ts';
import { timeLimit } from './time-limit.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

type Parts = Pick<RelayContext, 'clock' | 'jobs' | 'limits' | 'log' | 'metrics' | 'network'>;
type Connection = PeerConnection<EligiblePeer>;

export interface ConnectionsParts {
  readonly eligibility: Eligibility;
  readonly filter: AddressFilter;
  readonly health: RelayHealth;
  /** Aborts when the relay stops. */
  readonly stopping: AbortSignal;
}

export interface OpenedStream {
  readonly stream: PeerStream;
  readonly connection: Connection;
}

/**
 * The connections with other relays by relay ID, in both directions, and the dials of this relay:
 * one at a time for each relay. Several connections with one relay are kept, and the newest is used;
 * they may end at different processes of that relay.
 */
export class PeerConnections {
  readonly #context: Parts;
  readonly #parts: ConnectionsParts;
  /** By relay ID, the newest last. Without connections that are closed or were retired. */
  readonly #usable = new Map<string, Connection[]>();
  /** Unix seconds, by relay ID: as many as {@link #usable}. */
  readonly #since = new Map<string, number>();
  /** When this relay last opened a stream, monotonic milliseconds, by relay ID. */
  readonly #lastUse: BoundedMap<string, number>;
  readonly #dials = new Map<string, Promise<Connection>>();
  /**
   * Relays that are being dialled, by Peer ID in hex: more than one if a descriptor binds the Peer
   * ID of another relay, which must not keep that one from being dialled.
   */
  readonly #expected = new Map<string, Set<string>>();
  #host: PeerHost<EligiblePeer> | undefined;

  constructor(context: Parts, parts: ConnectionsParts) {
    this.#context = context;
    this.#parts = parts;
    this.#lastUse = new BoundedMap(context.limits.federationRegistryRelays);
    parts.eligibility.onDrop(({ relayId }, reason) => this.closeAll(relayId, reason));
  }

  /** Sets the host that dials; before, no relay can be reached. */
  use(host: PeerHost<EligiblePeer>): void {
    this.#host = host;
  }

  /**
   * Admits a peer after its handshake (07 §B4), for the host.
   *
   * @throws PeerRefusal
   */
  async admit(remote: RemotePeer, signal: AbortSignal): Promise<EligiblePeer> {
    return await this.#parts.eligibility.admit(remote, this.#expectedOf(remote), signal);
  }

  #expectedOf({ direction, peerId }: RemotePeer): ExpectedPeer {
    if (direction === 'inbound') return {};
    const [relayId, ...others] = this.#expected.get(hex(peerId)) ?? [];
    // If several have this Peer ID, the handshake tells which one answers; the dials compare it.
    return relayId === undefined || others.length > 0 ? { peerId } : { relayId, peerId };
  }

  /** Takes over an admitted connection of either direction, from the host. */
  opened(connection: Connection): void {
    const { relayId, peerId } = connection.peer;
    const current = this.#parts.eligibility.find(relayId);
    if (current === undefined || hex(current.peerId) !== hex(peerId)) {
      connection.close('the relay was dropped meanwhile');
      return;
    }
    const known = this.#usable.get(relayId) ?? [];
    this.#usable.set(relayId, [...known, connection]);
    if (known.length === 0) {
      this.#since.set(relayId, this.#context.clock.now());
      this.#context.jobs.wake(connectionsJobName);
      const { address, direction } = connection.remote;
      peerConnected(this.#context, { relay: relayId, address, direction });
    }
    void connection.closed.then(() => this.#remove(connection));
    this.#parts.health.succeeded(relayId);
  }

  isConnected(relayId: string): boolean {
    return this.#usable.has(relayId);
  }

  /** When each relay with a connection was connected, Unix seconds, by relay ID. */
  get since(): ReadonlyMap<string, number> {
    return new Map(this.#since);
  }

  /** Number of relays with a connection. */
  get connected(): number {
    return this.#usable.size;
  }

  /**
   * Opens a stream to a relay, dialling it if there is no connection. A failure pauses the relay.
   *
   * @throws Error of the dial or stream: nothing was sent; the signal's reason
   */
  async openStream(relayId: string, protocol: string, signal: AbortSignal): Promise<OpenedStream> {
    this.#lastUse.set(relayId, this.#context.clock.monotonic());
    // A connection may have been lost without notice, so each is tried until one works.
    for (;;) {
      const known = this.#newest(relayId);
      const connection = known ?? (await this.dial(relayId, signal));
      try {
        return { stream: await connection.openStream(protocol, { signal }), connection };
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        this.retire(connection);
        if (known !== undefined) continue;
        this.#parts.health.failed(relayId, wordsOf(error));
        throw error;
      }
    }
  }

  /**
   * Opens a stream of the same protocol after a connection was lost during a request, over another
   * connection that is open, perhaps to another process of that relay.
   *
   * @returns `undefined` if the connection is open, so that only its stream failed, or there is no other
   */
  async openInstead(
    lost: Connection,
    protocol: string,
    signal: AbortSignal,
  ): Promise<OpenedStream | undefined> {
    if (lost.isOpen) return undefined;
    const { relayId } = lost.peer;
    for (;;) {
      const connection = this.#newest(relayId);
      if (connection === undefined || signal.aborted) return undefined;
      try {
        return { stream: await connection.openStream(protocol, { signal }), connection };
      } catch {
        if (!signal.aborted) this.retire(connection);
      }
    }
  }

  /**
   * Dials a relay, unless a dial is under way, which all callers share then.
   *
   * @throws Error of the last address; the signal's reason
   */
  async dial(relayId: string, signal: AbortSignal): Promise<Connection> {
    let dial = this.#dials.get(relayId);
    if (dial === undefined) {
      dial = this.#dial(relayId).finally(() => this.#dials.delete(relayId));
      this.#dials.set(relayId, dial);
    }
    return await rejectOnAbort(signal, dial);
  }

  /**
   * Dials a peer of which only Peer ID and addresses are known; the handshake shows which relay it is
   * (07 §B4).
   *
   * @throws Error of the last address; the signal's reason
   */
  async dialUnknown({ peerId, addresses }: KadCandidate, signal: AbortSignal): Promise<Connection> {
    const dialled = addresses.map((address) => ({ ...address, peerId }));
    const connection = await this.#dialAddresses(dialled, signal);
    await this.#checkProtocols(connection, signal);
    return connection;
  }

  /** Uses a connection for no more streams, and closes it when those under way have had their time. */
  retire(connection: Connection): void {
    this.#remove(connection);
    const { clock, limits } = this.#context;
    const timer = clock.after(limits.relayCallTimeout, () => connection.close('replaced'));
    void connection.closed.then(() => timer[Symbol.dispose]());
  }

  /**
   * Closes connections without a stream, those used least recently first, until at most `most` relays
   * are connected: lookups connect this relay with ever more of a large network.
   */
  retireUnused(most: number): void {
    const byUse = [...this.#usable.keys()].sort((a, b) => this.#usedAt(a) - this.#usedAt(b));
    let left = byUse.length - most;
    for (const relayId of byUse) {
      if (left <= 0) return;
      const connections = this.#usable.get(relayId) ?? [];
      if (connections.some(({ streams }) => streams > 0)) continue;
      for (const connection of connections) this.retire(connection);
      left -= 1;
    }
  }

  #usedAt(relayId: string): number {
    return this.#lastUse.get(relayId) ?? 0;
  }

  /** Closes all connections of a relay. */
  closeAll(relayId: string, reason: string): void {
    for (const connection of this.#host?.connections ?? []) {
      if (connection.peer.relayId === relayId) connection.close(reason);
    }
  }

  #newest(relayId: string): Connection | undefined {
    return this.#usable.get(relayId)?.findLast(({ isOpen }) => isOpen);
  }

  #remove(connection: Connection): void {
    const { relayId } = connection.peer;
    const known = this.#usable.get(relayId);
    if (known === undefined || !known.includes(connection)) return;
    const left = known.filter((other) => other !== connection);
    if (left.length > 0) {
      this.#usable.set(relayId, left);
      return;
    }
    this.#usable.delete(relayId);
    this.#since.delete(relayId);
    this.#context.jobs.wake(connectionsJobName);
    peerDisconnected(this.#context, { relay: relayId });
  }

  async #dial(relayId: string): Promise<Connection> {
    const { clock, limits } = this.#context;
    const { health, stopping } = this.#parts;
    using limit = timeLimit(clock, limits.peerDialTimeout, stopping);
    try {
      return await this.#dialCandidate(relayId, limit.signal);
    } catch (error) {
      if (!stopping.aborted) health.failed(relayId, wordsOf(error));
      throw error;
    }
  }

  /** Dials a relay as it is known; if that fails, as its registered endpoint has it now. */
  async #dialCandidate(relayId: string, signal: AbortSignal): Promise<Connection> {
    const { eligibility } = this.#parts;
    const known = await rejectOnAbort(signal, eligibility.candidate(relayId));
    try {
      return await this.#dialPeer(known, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const refresh = eligibility.candidate(relayId, { isFresh: true });
      const fresh = await rejectOnAbort(signal, refresh).catch(() => known);
      const { endpoints } = known.descriptor;
      if (fresh.descriptor.endpoints.join(' ') === endpoints.join(' ')) throw error;
      return await this.#dialPeer(fresh, signal);
    }
  }

  async #dialPeer(peer: EligiblePeer, signal: AbortSignal): Promise<Connection> {
    const key = hex(peer.peerId);
    const { relayId } = peer;
    const expected = this.#expected.get(key) ?? new Set();
    this.#expected.set(key, expected.add(relayId));
    try {
      const connection = await this.#dialAddresses(peer.addresses, signal);
      if (connection.peer.relayId !== relayId) {
        throw new PeerRefusal('relay_id_expected', 'the relay is not the one that was dialled');
      }
      await this.#checkProtocols(connection, signal);
      return connection;
    } finally {
      expected.delete(relayId);
      if (expected.size === 0) this.#expected.delete(key);
    }
  }

  /** Dials the addresses of a relay, a few at once; the first connection wins. */
  async #dialAddresses(
    addresses: readonly Libp2pAddress[],
    signal: AbortSignal,
  ): Promise<Connection> {
    const { limits } = this.#context;
    const waiting = addresses.slice(0, limits.peerAddresses);
    const won = new AbortController();
    const ended = AbortSignal.any([signal, won.signal]);
    let lastError: unknown = new Error('the relay has no address');
    const worker = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        try {
          return await this.#dialAddress(next, ended);
        } catch (error) {
          if (ended.aborted) break;
          lastError = error;
        }
      }
      throw lastError;
    };
    const workers = Array.from({ length: limits.peerDials }, worker);
    try {
      return await Promise.any(workers);
    } catch {
      throw signal.aborted ? signal.reason : lastError;
    } finally {
      won.abort(new Error('another address was faster'));
      // A dial that ended at the same moment is one more connection, which is kept.
      for (const one of workers) one.catch(() => {});
    }
  }

  async #dialAddress(address: Libp2pAddress, signal: AbortSignal): Promise<Connection> {
    const host = this.#host;
    if (host === undefined) throw new Error('this relay does not listen for other relays yet');
    const { peerId, port } = address;
    let lastError: unknown;
    for (const ip of await rejectOnAbort(signal, this.#parts.filter.resolve(address))) {
      try {
        return await host.dial({ host: ip, port, peerId, signal });
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        lastError = error;
      }
    }
    throw lastError;
  }

  /** Checks that the dialled relay has both protocols (07 §A9). Streams without a frame are legal. */
  async #checkProtocols(connection: Connection, signal: AbortSignal): Promise<void> {
    const { clock, limits, network } = this.#context;
    try {
      for (const protocol of [dhtProtocol(network), rpcProtocol(network)]) {
        const stream = await connection.openStream(protocol, { signal });
        void finishStream(stream, clock, limits.peerLinger);
      }
    } catch (error) {
      connection.close('does not support both protocols');
      throw error;
    }
  }
}

/** Says in words why a relay was not reached, for its operator and this one's. */
export function wordsOf(error: unknown): string {
  if (error instanceof PeerRefusal) return `refused: ${error.message}`;
  if (error instanceof PeerError) return error.message;
  return error instanceof Error ? error.message : String(error);
}
