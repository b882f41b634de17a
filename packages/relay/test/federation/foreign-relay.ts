/** A relay of another implementation, as the relay under test meets it: everything it sends is the test's. */
import { join } from 'node:path';
import {
  defaultPeerLimits,
  ed25519Identity,
  type PeerConnection,
  PeerHost,
  type PeerProtocol,
  type PeerStream,
} from '@posthouse/peer';
import {
  type AccountSigner,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  type FinalRoute,
  peerIdOf,
  type RelayDescriptor,
  type RelayEntry,
  signDescriptor,
} from '@posthouse/protocol';
import {
  decodeKadMessage,
  encodeKadMessage,
  type KadMessage,
  parsePeerId,
} from '@posthouse/protocol/federation';
import { nodePrimitives } from '@posthouse/protocol/node';
import { enterRelay } from '../../src/federation/registry/file.ts';
import type { Person } from '../fixtures/person.ts';
import { network } from '../support/modules.ts';
import { freePort } from '../support/ports.ts';
import type { ServedRelay } from '../support/served-relay.ts';

const rpc = '/svc/relay/1.0.0';
const dht = '/svc/kad/1.0.0';
const doctor = '/svc/posthouse-doctor/1.0.0';

const limits = { ...defaultPeerLimits, handshakesPerAddress: 1_000, handshakeBurst: 1e6 };

type Serve = (stream: PeerStream) => Promise<void>;

export interface ForeignRelayOptions {
  /** What its keys are made of. */
  readonly byte?: number;
  /** Streams of relay RPC that it accepts on a connection; it resets those above. */
  readonly streams?: number;
  /** How it serves `posthouse-doctor`; without it, it does not have the protocol. */
  readonly serveDoctor?: Serve;
  /** Registry file of the relay under test; by default the one in its data folder. */
  readonly registry?: string;
}

export class ForeignRelay implements AsyncDisposable {
  readonly signer: AccountSigner;
  readonly relayId: string;
  /** How it serves streams that the relay under test opens; by default it ends them. */
  serveRpc: Serve = async () => {};
  serveDht: Serve = async () => {};
  /** What it presents in handshakes; by default its own descriptor. */
  present: () => Promise<RelayDescriptor> = () => this.descriptor();
  readonly #relay: ServedRelay;
  readonly #seed: Uint8Array;
  #host: PeerHost<string> | undefined;
  #port = 0;
  #connection: PeerConnection<string> | undefined;

  readonly #registry: string;
  readonly #streams: number;
  readonly #serveDoctor: Serve | undefined;

  private constructor(relay: ServedRelay, options: ForeignRelayOptions) {
    const { byte, registry, streams, serveDoctor } = options;
    this.#relay = relay;
    this.#serveDoctor = serveDoctor;
    this.#streams = streams ?? 64;
    this.#registry = registry ?? join(relay.data, 'registry.json');
    this.#seed = new Uint8Array(32).fill(byte ?? 0x91);
    this.signer = accountSigner(network, this.#seed);
    this.relayId = deriveRelayId(network, this.signer.publicKey);
  }

  /** Enters a relay into the registry, and connects it with the relay under test. */
  static async start(relay: ServedRelay, options: ForeignRelayOptions = {}): Promise<ForeignRelay> {
    const foreign = new ForeignRelay(relay, options);
    await foreign.list();
    await foreign.listen();
    await foreign.dial();
    return foreign;
  }

  /** Writes its record into the registry file. */
  async list(status: RelayEntry['status'] = 'active'): Promise<void> {
    await enterRelay(network, this.#registry, {
      relay_id: this.relayId,
      endpoint: 'https://127.0.0.1:1/svc/v1',
      status,
      updated_at: 1,
    });
  }

  /** Listens again, on the port of before. */
  async listen(): Promise<void> {
    const protocol = (streams: number, serve: () => Serve): PeerProtocol<string> => ({
      streams,
      serve: (stream) => serve()(stream),
    });
    const serveDoctor = this.#serveDoctor;
    this.#host = new PeerHost<string>({
      identity: ed25519Identity(this.#seed),
      descriptor: async () => JSON.stringify(await this.present()),
      admit: async () => 'the relay under test',
      protocols: new Map([
        [rpc, protocol(this.#streams, () => this.serveRpc)],
        [dht, protocol(32, () => this.serveDht)],
        ...(serveDoctor ? [[doctor, protocol(1, () => serveDoctor)] as const] : []),
      ]),
      limits,
      agent: 'foreign',
    });
    this.#port ||= await freePort();
    await this.#host.listen({ host: '127.0.0.1', port: this.#port });
  }

  /** Connects with the relay under test, or with another process of it, for calls from now on. */
  async dial(relay: ServedRelay = this.#relay): Promise<void> {
    const { peerPort: port = 0, context } = relay.server;
    const peerId = parsePeerId(context.identity.peerId) as Uint8Array;
    const signal = AbortSignal.timeout(20_000);
    this.#connection = await this.#host?.dial({ host: '127.0.0.1', port, peerId, signal });
    // Admission at the other side ends before it agrees on a stream.
    const stream = await this.open(rpc);
    stream.end();
    await stream.readFrame();
  }

  /** The port it listens on, also while it is stopped. */
  get port(): number {
    return this.#port;
  }

  /** Number of connections with the relay under test. */
  get connections(): number {
    return this.#host?.connections.size ?? 0;
  }

  get connection(): PeerConnection<string> {
    if (this.#connection === undefined) throw new Error('the foreign relay is not connected');
    return this.#connection;
  }

  /** Opens a stream at the relay under test. */
  async open(protocol: string): Promise<PeerStream> {
    return await this.connection.openStream(protocol, { signal: AbortSignal.timeout(20_000) });
  }

  openRpc = () => this.open(rpc);

  /** Sends one DHT message. @throws the stream's error if it was reset */
  async askDht(message: KadMessage | Uint8Array): Promise<KadMessage | undefined> {
    const stream = await this.open(dht);
    await stream.writeFrame(message instanceof Uint8Array ? message : encodeKadMessage(message));
    stream.end();
    const frame = await stream.readFrame();
    return frame && decodeKadMessage(frame, { peers: 40, addresses: 8 });
  }

  /** A final route of a person that names this relay. */
  async route(person: Person, revision: number): Promise<FinalRoute> {
    const draft = await person.route({ relay_id: this.relayId, revision });
    return await cosignRoute(network, this.signer, draft);
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    await this.#host?.[Symbol.asyncDispose]();
    this.#host = undefined;
    this.#connection = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#host?.connections ?? []) connection.close('the test ends');
    await this.stop();
  }

  /** Its descriptor, right unless a test says otherwise. */
  async descriptor({
    port = this.#port,
    peerId = this.peerId,
    seconds = 86_400,
  }: {
    readonly port?: number;
    readonly peerId?: string;
    /** Until it expires. */
    readonly seconds?: number;
  } = {}): Promise<RelayDescriptor> {
    return await signDescriptor(network, this.signer, {
      endpoints: ['https://127.0.0.1:1/svc/v1', `/ip4/127.0.0.1/tcp/${port}/p2p/${peerId}`],
      expires_at: this.#relay.clock.now() + seconds,
    });
  }

  get peerId(): string {
    return peerIdOf(nodePrimitives.ed25519.publicKey(this.#seed));
  }
}
