/** A relay that is nothing but its end of the wire: listed in the registry, it dials and asks. For `network.ts`. */
import { defaultPeerLimits, ed25519Identity, type PeerConnection, PeerHost } from '@posthouse/peer';
import {
  accountSigner,
  classifyEndpoint,
  deriveRelayId,
  type Network,
  peerIdOf,
  type RelayDescriptor,
  signDescriptor,
  utf8,
} from '@posthouse/protocol';
import { encodeRelayRequest } from '@posthouse/protocol/federation';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { enterRelay } from '../packages/relay/src/federation/registry/file.ts';

const endpoint = 'https://127.0.0.1:1/svc/v1';

export interface BenchPeerOptions {
  readonly network: Network;
  /** Of the relay that is measured. */
  readonly descriptor: RelayDescriptor;
  /** Path of the registry file. */
  readonly registry: string;
}

export class BenchPeer implements AsyncDisposable {
  readonly #options: BenchPeerOptions;
  readonly #seed = nodeRandom(32);
  readonly #signer: ReturnType<typeof accountSigner>;
  readonly #host: PeerHost<undefined>;
  #connection: PeerConnection<undefined> | undefined;

  constructor(options: BenchPeerOptions) {
    this.#options = options;
    this.#signer = accountSigner(options.network, this.#seed);
    this.#host = new PeerHost({
      identity: ed25519Identity(this.#seed),
      descriptor: () => this.#descriptor(),
      admit: () => Promise.resolve(undefined),
      protocols: new Map(),
      limits: defaultPeerLimits,
      agent: 'bench',
    });
  }

  /** Enters it into the registry. */
  async list(): Promise<void> {
    const { network, registry } = this.#options;
    const relay_id = deriveRelayId(network, this.#signer.publicKey);
    await enterRelay(network, registry, { relay_id, endpoint, status: 'active', updated_at: 1 });
  }

  /** Connects; resolves when the relay has admitted it, which a stream shows. */
  async dial(): Promise<void> {
    const endpoints = this.#options.descriptor.endpoints.map((item) => classifyEndpoint(item));
    const found = endpoints.find((each) => each.kind === 'libp2p');
    if (found === undefined) throw new Error('the relay has no libp2p address');
    const { host, port, peerId } = found.address;
    const signal = AbortSignal.timeout(20_000);
    this.#connection = await this.#host.dial({ host, port, peerId, signal });
    const stream = await this.#open();
    stream.end();
    await stream.readFrame();
  }

  /** Calls `device.status` for a while, so many at once; returns answers per second. */
  async callsPerSecond(milliseconds: number, atOnce: number): Promise<number> {
    const { context } = this.#options.network;
    const account = `${context.split(':').slice(0, 2).join(':')}:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT`;
    const params = { account, device_id: 'dev_VyJyKJVXKGyCX2vsKlsIUw' };
    const request = utf8(encodeRelayRequest({ id: 1, method: 'device.status', params }));
    const started = performance.now();
    let answers = 0;
    const worker = async () => {
      while (performance.now() - started < milliseconds) {
        const stream = await this.#open();
        await stream.writeFrame(request);
        stream.end();
        if ((await stream.readFrame()) === undefined) throw new Error('no answer');
        answers += 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
    return (answers * 1_000) / (performance.now() - started);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection?.close('the bench ends');
    await this.#host[Symbol.asyncDispose]();
  }

  async #open() {
    if (this.#connection === undefined) throw new Error('the peer is not connected');
    const signal = AbortSignal.timeout(20_000);
    return await this.#connection.openStream('/svc/relay/1.0.0', { signal });
  }

  async #descriptor(): Promise<string> {
    const peerId = peerIdOf(nodePrimitives.ed25519.publicKey(this.#seed));
    const descriptor = await signDescriptor(this.#options.network, this.#signer, {
      endpoints: [endpoint, `/ip4/127.0.0.1/tcp/1/p2p/${peerId}`],
      expires_at: Math.floor(Date.now() / 1_000) + 86_400,
    });
    return JSON.stringify(descriptor);
  }
}
