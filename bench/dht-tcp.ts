/** Relays of the DHT over real TCP in this process: lookups and publication over connections that they dial. */
import {
  defaultPeerLimits,
  ed25519Identity,
  type PeerConnection,
  PeerHost,
  type PeerStream,
} from '@posthouse/peer';
import { hex, utf8 } from '@posthouse/protocol';
import {
  checkKadReply,
  decodeKadMessage,
  encodeKadMessage,
  type KadMessage,
  type KadRequest,
  kadTypes,
  peerIdOfKey,
} from '@posthouse/protocol/federation';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { systemClock } from '../packages/relay/src/clock.ts';
import { IterativeLookups } from '../packages/relay/src/federation/dht/iterative-lookup.ts';
import { Publications } from '../packages/relay/src/federation/dht/publication.ts';
import { DhtTable } from '../packages/relay/src/federation/dht/table.ts';
import type { EligiblePeer } from '../packages/relay/src/federation/verify-descriptor.ts';
import { defaultLimits } from '../packages/relay/src/limits.ts';
import { AdmittedPeers } from '../packages/relay/test/federation/dht-simulation/admitted.ts';
import { network } from '../packages/relay/test/support/modules.ts';

const protocol = '/svc/kad/1.0.0';
const limits = {
  ...defaultPeerLimits,
  ...{ handshakesPerAddress: 10_000, handshakeRate: 1e6, handshakeBurst: 1e6 },
};

/** A relay that serves and asks over TCP; what it stores is in memory. */
export class TcpRelay implements AsyncDisposable {
  readonly peer: EligiblePeer;
  readonly lookups: IterativeLookups<EligiblePeer>;
  readonly publications: Publications<EligiblePeer>;
  /** Requests that it sent. */
  requests = 0;
  /** The port it listens on. */
  port = 0;
  readonly #relays: ReadonlyMap<string, TcpRelay>;
  readonly #host: PeerHost<EligiblePeer>;
  readonly #admitted = new AdmittedPeers();
  readonly #table: DhtTable;
  readonly #values = new Map<string, Uint8Array>();
  /** By relay ID. */
  readonly #connections = new Map<string, Promise<PeerConnection<EligiblePeer>>>();

  private constructor(index: number, relays: ReadonlyMap<string, TcpRelay>) {
    const seed = primitives.sha256(utf8(`bench relay ${index}`));
    const data = primitives.ed25519.publicKey(seed);
    const peerId = peerIdOfKey(primitives, { type: 'ed25519', data });
    this.peer = { relayId: `relay ${index}`, peerId, addresses: [] } as unknown as EligiblePeer;
    this.#relays = relays;
    this.#host = new PeerHost<EligiblePeer>({
      identity: ed25519Identity(seed),
      descriptor: () => '{}',
      admit: async (remote) => (relays.get(hex(remote.peerId)) as TcpRelay).peer,
      protocols: new Map([[protocol, { streams: 32, serve: (stream) => this.#serve(stream) }]]),
      limits,
      agent: 'bench',
      observer: {
        admitted: (connection) => {
          if (!this.#connections.has(connection.peer.relayId)) {
            this.#connections.set(connection.peer.relayId, Promise.resolve(connection));
          }
        },
      },
    });
    const eligibility = this.#admitted as never;
    const options = { eligibility, self: peerId, probe: async () => true };
    this.#table = new DhtTable({ network, limits: defaultLimits }, options);
    const ask = (peer: EligiblePeer, request: KadRequest, signal: AbortSignal) =>
      this.#ask(peer, request, signal);
    const parts = { primitives, clock: systemClock, limits: defaultLimits, self: peerId };
    this.lookups = new IterativeLookups({
      ...parts,
      network: {
        closest: (raw, count) => this.#table.closest(raw, count),
        candidate: async (candidate) => relays.get(hex(candidate.peerId))?.peer,
        ask,
      },
    });
    this.publications = new Publications({ ...parts, network: { ask } });
  }

  /** Starts relays that know each other from the registry; connections are made when needed. */
  static async startAll(count: number): Promise<readonly TcpRelay[]> {
    const relays = new Map<string, TcpRelay>();
    const started = Array.from({ length: count }, (_, index) => new TcpRelay(index, relays));
    for (const relay of started) relays.set(hex(relay.peer.peerId), relay);
    for (const relay of started) {
      relay.port = (await relay.#host.listen({ host: '127.0.0.1', port: 0 })).port;
      for (const other of started) if (other !== relay) relay.#admitted.enter(other.peer);
    }
    return started;
  }

  async #ask(
    peer: EligiblePeer,
    request: KadRequest,
    signal: AbortSignal,
  ): Promise<KadMessage | undefined> {
    this.requests += 1;
    const connection = await this.#connect(peer, signal);
    const stream = await connection.openStream(protocol, { signal });
    await stream.writeFrame(encodeKadMessage(request));
    stream.end();
    const frame = await stream.readFrame();
    if (frame === undefined) return undefined;
    const reply = decodeKadMessage(frame, { peers: 40, addresses: 8 });
    checkKadReply(request, reply);
    this.#table.noteOutcome(peer.relayId, true);
    return reply;
  }

  async #connect(peer: EligiblePeer, signal: AbortSignal): Promise<PeerConnection<EligiblePeer>> {
    const known = this.#connections.get(peer.relayId);
    if (known !== undefined) return await known;
    const { port } = this.#relays.get(hex(peer.peerId)) as TcpRelay;
    const dial = this.#host.dial({ host: '127.0.0.1', port, peerId: peer.peerId, signal });
    this.#connections.set(peer.relayId, dial);
    return await dial;
  }

  async #serve(stream: PeerStream): Promise<void> {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const {
      type = kadTypes.findNode,
      key = new Uint8Array(),
      record,
    } = decodeKadMessage(frame, {
      peers: 0,
      addresses: 0,
    });
    if (type === kadTypes.putValue && record?.value !== undefined) {
      this.#values.set(hex(key), record.value);
      return await stream.writeFrame(encodeKadMessage({ type, key, record }));
    }
    const value = this.#values.get(hex(key));
    const closerPeers = this.#table
      .closest(key, defaultLimits.dhtCloserPeers)
      .map(({ peerId }) => ({ id: peerId, addrs: [] }));
    const found = value && { record: { key, value } };
    await stream.writeFrame(encodeKadMessage({ type, key, closerPeers, ...found }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#host.connections) connection.close('the bench ends');
    await this.#host[Symbol.asyncDispose]();
  }
}
