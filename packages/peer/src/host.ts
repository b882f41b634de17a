import { createServer, type Server, type Socket } from 'node:net';
import { decodeHandshakePayload, handshakeSigningInput } from '@posthouse/protocol/federation';
import { AddressLimits } from './address-limits.ts';
import { ByteTotal } from './byte-pool.ts';
import { type PeerClock, systemClock } from './clock.ts';
import {
  type ConnectionOptions,
  PeerConnection,
  type PeerProtocol,
  type RemotePeer,
} from './connection.ts';
import { withDeadline } from './deadlines.ts';
import { dialSocket } from './dial.ts';
import { PeerError } from './errors.ts';
import { type OwnSide, type SecuredPeer, secureInbound, secureOutbound } from './handshake.ts';
import type { PeerIdentity } from './identity.ts';
import type { PeerLimits } from './limits.ts';
import { agreeOnYamux } from './muxer.ts';
import type { NoiseKeys } from './noise/handshake.ts';
import { generateNoiseKeys } from './noise/keys.ts';
import { checkHeldBytes, makePeerPools, type PeerPools } from './peer-pools.ts';
import { withStandardProtocols } from './standard-protocols.ts';
import { undivided, type WorkTurns } from './turns.ts';

/** What happens at a host, for the log and metrics; calls must not throw. */
export interface PeerObserver<P> {
  admitted?(connection: PeerConnection<P>): void;
  /** An inbound connection failed before it was admitted, or was refused. */
  refused?(address: string, error: unknown): void;
  closed?(connection: PeerConnection<P>, reason: PeerError): void;
  /** A protocol's `serve` has thrown. */
  failed?(protocol: string, error: unknown): void;
}

export interface PeerHostOptions<P> {
  readonly identity: PeerIdentity;
  /** Text of the own current descriptor, read for each handshake. */
  readonly descriptor: () => string | Promise<string>;
  /**
   * Decides about a peer that has proved its Peer ID, before any stream exists (07 §B4). A rejection
   * closes the connection.
   */
  readonly admit: (remote: RemotePeer, signal: AbortSignal) => Promise<P>;
  /** Protocols that peers may use; identify and ping are added. */
  readonly protocols: ReadonlyMap<string, PeerProtocol<P>>;
  readonly limits: PeerLimits;
  /** Counts the bytes held for all peers; by default one of `heldBytesOfAll` for this host alone. */
  readonly held?: ByteTotal;
  /** Divides what peers send over turns of the event loop; by default nothing is divided. */
  readonly turns?: WorkTurns;
  /** Divides handshakes, which strangers make: they take no turns of peers. By default nothing is divided. */
  readonly handshakeTurns?: WorkTurns;
  /** Name and version of the software, for identify. */
  readonly agent: string;
  /** Whether connections of an IP address are accepted; all are by default. */
  readonly mayAccept?: (address: string) => boolean;
  /** Whether an IP address may be dialled, also one that DNS returned. */
  readonly mayDial?: (address: string) => boolean;
  readonly clock?: PeerClock;
  readonly observer?: PeerObserver<P>;
}

/** Where to dial a peer. */
export interface PeerAddress {
  /** An IP address or a name. */
  readonly host: string;
  readonly port: number;
  /** Multihash bytes; another peer at the address is refused. */
  readonly peerId: Uint8Array;
}

interface PeerEntry<P> {
  readonly pools: PeerPools;
  readonly connections: Set<PeerConnection<P>>;
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/**
 * A relay in the network of relays: listens, dials, authenticates, and holds the admitted
 * connections (07 §B2 to §B4).
 *
 * @example
 * await using host = new PeerHost({
 *   identity: ed25519Identity(seed),
 *   descriptor: () => '{}',
 *   admit: async (remote) => remote.address,
 *   protocols: new Map(),
 *   limits: defaultPeerLimits,
 *   agent: 'example/1.0',
 * });
 * const { port } = await host.listen({ host: '127.0.0.1', port: 0 });
 */
export class PeerHost<P> implements AsyncDisposable {
  readonly #options: PeerHostOptions<P>;
  readonly #clock: PeerClock;
  readonly #own: OwnSide;
  readonly #protocols: ReadonlyMap<string, PeerProtocol<P>>;
  readonly #addresses: AddressLimits;
  readonly #servers = new Set<Server>();
  readonly #pending = new Set<Socket>();
  readonly #connections = new Set<PeerConnection<P>>();
  readonly #peers = new Map<string, PeerEntry<P>>();
  readonly #held: ByteTotal;
  readonly #stopping = new AbortController();

  /** @throws RangeError for limits that contradict each other */
  constructor(options: PeerHostOptions<P>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { identity, descriptor, limits, handshakeTurns: turns = undivided } = options;
    const staticKeys = generateNoiseKeys();
    const signature = identity.sign(handshakeSigningInput(staticKeys.publicKey));
    const decodePayload = decodeHandshakePayload;
    this.#own = { identity, staticKeys, signature, descriptor, decodePayload, limits, turns };
    const { protocols, agent } = options;
    const standard = { identity, agent, limits, clock: this.#clock };
    this.#protocols = withStandardProtocols(protocols, standard);
    const streams = [...this.#protocols.values()].reduce((sum, one) => sum + one.streams, 0);
    checkHeldBytes(limits, streams);
    this.#held = options.held ?? new ByteTotal(limits.heldBytesOfAll);
    this.#addresses = new AddressLimits(limits, this.#clock);
  }

  /** The admitted connections. */
  get connections(): ReadonlySet<PeerConnection<P>> {
    return this.#connections;
  }

  /** Accepts connections; resolves with the address in use, so port 0 takes any. */
  async listen(at: { host: string; port: number }): Promise<{ host: string; port: number }> {
    this.#stopping.signal.throwIfAborted();
    const server = createServer({ noDelay: true }, (socket) => void this.#accept(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: at.host, port: at.port }, resolve);
    });
    server.on('error', (error) => this.#options.observer?.refused?.('', error));
    if (this.#stopping.signal.aborted) server.close();
    this.#stopping.signal.throwIfAborted();
    this.#servers.add(server);
    const address = server.address();
    if (address === null || typeof address === 'string') throw new TypeError('no TCP address');
    return { host: address.address, port: address.port };
  }

  /**
   * Connects to a peer.
   *
   * @throws PeerError `unreachable`, `timeout`, `wrong_peer`, `own_peer`, `limit`, `not_supported`,
   * `protocol` or `closed`; what `admit` rejects with; the signal's reason
   * @example
   * const connection = await host.dial({ host: '192.0.2.1', port: 4001, peerId, signal });
   */
  async dial(address: PeerAddress & { readonly signal: AbortSignal }): Promise<PeerConnection<P>> {
    const { limits, mayDial = () => true } = this.#options;
    const signal = AbortSignal.any([address.signal, this.#stopping.signal]);
    const { host, port } = address;
    const socket = await this.#within(
      limits.dialTime,
      'the connection took too long',
      signal,
      (late) => dialSocket({ host, port, mayDial }, late),
    );
    return this.#establish(socket, signal, {
      direction: 'outbound',
      secure: () => secureOutbound(socket, this.#own, address.peerId),
    });
  }

  /** Stops listening, lets streams under way end for a while, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new PeerError('closed', 'this relay stops');
    this.#stopping.abort(reason);
    for (const socket of this.#pending) socket.destroy();
    const closed = [...this.#servers].map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const grace = new AbortController();
    using _timer = this.#clock.after(this.#options.limits.stopGrace, () => grace.abort(reason));
    const drained = [...this.#connections].map((one) => one.drain(reason.message, grace.signal));
    await Promise.all([...drained, ...closed]);
  }

  async #accept(socket: Socket): Promise<void> {
    const address = socket.remoteAddress ?? '';
    const { mayAccept = () => true } = this.#options;
    if (!mayAccept(address)) {
      socket.destroy();
      return;
    }
    const entered = this.#stopping.signal.aborted
      ? 'this relay stops'
      : this.#addresses.enter(address);
    if (typeof entered === 'string') {
      socket.destroy();
      this.#options.observer?.refused?.(address, new PeerError('limit', entered));
      return;
    }
    try {
      await this.#establish(socket, this.#stopping.signal, {
        direction: 'inbound',
        secure: () => secureInbound(socket, this.#own),
      });
    } catch (error) {
      const quiet = error instanceof PeerError && error.code === 'own_peer';
      if (!quiet) this.#options.observer?.refused?.(address, error);
    } finally {
      entered();
    }
  }

  /** Handshake, admission, Yamux; the socket is destroyed if any of them fails. */
  async #establish(
    socket: Socket,
    signal: AbortSignal,
    side: { direction: RemotePeer['direction']; secure: () => Promise<SecuredPeer> },
  ): Promise<PeerConnection<P>> {
    const { limits, admit } = this.#options;
    const address = socket.remoteAddress ?? '';
    const isDialer = side.direction === 'outbound';
    // Until a reader is there, an error must not end the process.
    socket.on('error', () => {});
    this.#pending.add(socket);
    let keys: NoiseKeys | undefined;
    try {
      const { handshakeTime, admissionTime, negotiationTime } = limits;
      const secured = await this.#within(
        handshakeTime,
        'the handshake took too long',
        signal,
        side.secure,
      );
      const { peerId, descriptor } = secured;
      const noiseKeys = secured.keys;
      keys = noiseKeys;
      const remote: RemotePeer = { peerId, descriptor, address, direction: side.direction };
      this.#checkRoom(peerId);
      const peer = await this.#within(admissionTime, 'admission took too long', signal, (late) =>
        admit(remote, late),
      );
      if (socket.destroyed) throw new PeerError('closed', 'the connection was lost');
      // The other side admits this one before it agrees.
      const time = isDialer ? admissionTime + negotiationTime : negotiationTime;
      const owner = hexOf(peerId);
      const { turns = undivided } = this.#options;
      const runSteps = (step: () => boolean) => turns.run(owner, step);
      const options = { keys: noiseKeys, isDialer, limits, runSteps };
      return await this.#within(time, 'no agreement on Yamux', signal, () =>
        agreeOnYamux(socket, options, (channel, rest) => {
          this.#checkRoom(peerId);
          const connection = this.#enter(remote, (pools) => {
            const options = { ...this.#connectionOptions, remote, peer, pools };
            return new PeerConnection(channel, options);
          });
          connection.start(rest);
          return connection;
        }),
      );
    } catch (error) {
      socket.destroy();
      keys?.sending.destroy();
      keys?.receiving.destroy();
      throw error;
    } finally {
      this.#pending.delete(socket);
    }
  }

  get #connectionOptions(): Omit<ConnectionOptions<P>, 'remote' | 'peer' | 'pools'> {
    return {
      protocols: this.#protocols,
      limits: this.#options.limits,
      clock: this.#clock,
      closed: (connection, reason) => this.#leave(connection, reason),
      failed: (protocol, error) => this.#options.observer?.failed?.(protocol, error),
    };
  }

  #enter(remote: RemotePeer, open: (pools: PeerPools) => PeerConnection<P>): PeerConnection<P> {
    const key = hexOf(remote.peerId);
    const entry = this.#peers.get(key) ?? { pools: this.#makePools(key), connections: new Set() };
    const connection = open(entry.pools);
    entry.connections.add(connection);
    this.#peers.set(key, entry);
    this.#connections.add(connection);
    this.#options.observer?.admitted?.(connection);
    return connection;
  }

  #leave(connection: PeerConnection<P>, reason: PeerError): void {
    const key = hexOf(connection.remote.peerId);
    const entry = this.#peers.get(key);
    entry?.connections.delete(connection);
    if (entry?.connections.size === 0) this.#peers.delete(key);
    this.#connections.delete(connection);
    this.#options.observer?.closed?.(connection, reason);
  }

  #makePools(key: string): PeerPools {
    return makePeerPools(this.#options.limits, {
      clock: this.#clock,
      total: this.#held,
      stuck: (reason) => {
        const connections = this.#peers.get(key)?.connections ?? [];
        for (const one of [...connections]) one.abort(new PeerError('limit', reason));
      },
    });
  }

  #checkRoom(peerId: Uint8Array): void {
    const { connections, connectionsPerPeer } = this.#options.limits;
    if (this.#connections.size >= connections) {
      throw new PeerError('limit', 'too many connections');
    }
    const ofPeer = this.#peers.get(hexOf(peerId))?.connections.size ?? 0;
    if (ofPeer >= connectionsPerPeer) {
      throw new PeerError('limit', 'too many connections of this peer');
    }
  }

  #within<T>(
    time: number,
    why: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const reason = new PeerError('timeout', why);
    return withDeadline({ clock: this.#clock, time, signal, reason }, work);
  }
}
