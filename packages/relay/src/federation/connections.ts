import {
  addressKey,
  type PeerConnection,
  type PeerHost,
  type PeerStream,
  type RemotePeer,
} from '@posthouse/peer';
import { hex } from '@posthouse/protocol';
import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import { peerConnected, peerDisconnected } from '../observability/peer-events.ts';
import { connectionsJobName } from './connections-job.ts';
import { type DialsParts, PeerDials, wordsOf } from './peer-dials.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

type Parts = Pick<
  RelayContext,
  'blocks' | 'clock' | 'jobs' | 'limits' | 'log' | 'metrics' | 'network'
>;
type Connection = PeerConnection<EligiblePeer>;

/** Why a connection from such an address is closed. */
const blockedAddress = 'the operator blocked the address';

export interface OpenedStream {
  readonly stream: PeerStream;
  readonly connection: Connection;
}

/**
 * The connections with other relays by relay ID, in both directions. Several connections with one
 * relay are kept, and the newest is used; they may end at different processes of that relay.
 */
export class PeerConnections {
  readonly #context: Parts;
  readonly #parts: DialsParts;
  /** Make the connections of which this relay is the dialler. */
  readonly dials: PeerDials;
  /** By relay ID, the newest last. Without connections that are closed or were retired. */
  readonly #usable = new Map<string, Connection[]>();
  /** Unix seconds, by relay ID: as many as {@link #usable}. */
  readonly #since = new Map<string, number>();
  /** When this relay last opened a stream, monotonic milliseconds, by relay ID. */
  readonly #lastUse: BoundedMap<string, number>;
  #host: PeerHost<EligiblePeer> | undefined;

  constructor(context: Parts, parts: DialsParts) {
    this.#context = context;
    this.#parts = parts;
    this.dials = new PeerDials(context, parts, (relayId) => this.isConnected(relayId));
    this.#lastUse = new BoundedMap(context.limits.federationRegistryRelays);
    parts.eligibility.onDrop(({ relayId }, reason) => this.closeAll(relayId, reason));
  }

  /** Sets the host of the connections; before, no relay can be reached. */
  use(host: PeerHost<EligiblePeer>): void {
    this.#host = host;
    this.dials.use(host);
  }

  /**
   * Admits a peer after its handshake (07 §B4), for the host.
   *
   * @throws PeerRefusal
   */
  async admit(remote: RemotePeer, signal: AbortSignal): Promise<EligiblePeer> {
    return await this.#parts.eligibility.admit(remote, this.dials.expectedOf(remote), signal);
  }

  /** Takes over an admitted connection of either direction, from the host. */
  opened(connection: Connection): void {
    const { relayId, peerId } = connection.peer;
    const current = this.#parts.eligibility.find(relayId);
    if (current === undefined || hex(current.peerId) !== hex(peerId)) {
      connection.close('the relay was dropped meanwhile');
      return;
    }
    // The address may have been blocked during the handshake.
    if (this.#isFromBlocked(connection)) {
      connection.close(blockedAddress);
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
      const connection = known ?? (await this.dials.dial(relayId, signal));
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

  /** Closes the connections that other relays made from addresses which are blocked now. */
  closeBlocked(): void {
    for (const connection of this.#host?.connections ?? []) {
      if (this.#isFromBlocked(connection)) connection.close(blockedAddress);
    }
  }

  /** This relay itself chooses the addresses that it dials. */
  #isFromBlocked({ remote }: Connection): boolean {
    if (remote.direction === 'outbound') return false;
    return this.#context.blocks.hasAddress(addressKey(remote.address));
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
}
