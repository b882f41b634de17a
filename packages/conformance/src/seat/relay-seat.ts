import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import {
  ed25519Identity,
  PeerError,
  type PeerHost,
  type PeerIdentity,
  type RemotePeer,
} from '@posthouse/peer';
import {
  type AccountSigner,
  accountSigner,
  classifyEndpoint,
  deriveRelayId,
  descriptorSigningInput,
  encodeBase64url,
  type Libp2pAddress,
  type Network,
  type RelayDescriptor,
  type RelayEntry,
} from '@posthouse/protocol';
import {
  encodeMultiaddr,
  formatMultiaddr,
  type KadPeer,
  type TcpAddress,
} from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { NotApplicable, Violation } from '../assert.ts';
import { unixSeconds } from '../fixtures/account.ts';
import type { DescriptorServer } from './descriptor-server.ts';
import { DhtService } from './dht-service.ts';
import { HomeAccount } from './home-account.ts';
import {
  type HandshakeResult,
  type MakePayload,
  payloadWith,
  performHandshake,
} from './raw-handshake.ts';
import type { RegistryFile } from './registry-file.ts';
import { RelayConnection } from './relay-connection.ts';
import { RelayService } from './relay-service.ts';
import { seatHost } from './seat-host.ts';

export interface SeatOptions {
  /** How the registry lists the relay, `active` by default. */
  readonly status?: RelayEntry['status'] | 'unlisted';
  /** Protocols that the relay does not have. */
  readonly without?: 'rpc' | 'dht';
  /** Whether its descriptor is not to be had over HTTPS: others learn of it by handshake alone. */
  readonly isHidden?: boolean;
  /** The peer key, by default a new one. */
  readonly identity?: PeerIdentity;
}

export interface SeatParts {
  readonly network: Network;
  readonly host: string;
  readonly name: string;
  /** Descriptor of the relay under test. */
  readonly target: RelayDescriptor;
  readonly server: DescriptorServer;
  readonly registry: RegistryFile;
}

/** Seconds in which a relay admits a peer that it must admit, its rate limits included. */
const admissionTime = 30;

/** Milliseconds between two attempts, more than the second in which a relay limits them. */
const attemptPause = 1_100;

/** A relay of the kit: keys, an entry in the registry, a descriptor, a listener and a dialler. */
export class RelaySeat implements AsyncDisposable {
  readonly signer: AccountSigner;
  readonly relayId: string;
  /** Discovery address. */
  readonly endpoint: string;
  /** Answers the requests of the relay under test. */
  readonly service: RelayService;
  /** Answers it in the relay DHT. */
  readonly dht: DhtService;
  /** Descriptors that the relay under test sent in handshakes. */
  readonly seen: RemotePeer[] = [];
  /** The peer key; a check may take another one before it calls {@link listen} again. */
  identity: PeerIdentity;
  /** Text of the descriptor that is served over HTTPS. */
  served = '';
  /** Text of the descriptor that is sent in handshakes; the served one if absent. */
  shown: string | undefined;
  readonly #parts: SeatParts;
  readonly #options: SeatOptions;
  readonly #hosts: PeerHost<RemotePeer>[] = [];
  #port = 0;

  private constructor(parts: SeatParts, options: SeatOptions) {
    this.#parts = parts;
    this.#options = options;
    const { network, name, server } = parts;
    this.signer = accountSigner(network, nodeRandom(32));
    this.relayId = deriveRelayId(network, this.signer.publicKey);
    const { isHidden = false, identity = ed25519Identity(randomBytes(32)) } = options;
    this.identity = identity;
    this.endpoint = server.add(name, () => (isHidden ? undefined : this.served));
    this.service = new RelayService(network);
    this.dht = new DhtService(network, this.service.homes);
  }

  static async open(parts: SeatParts, options: SeatOptions): Promise<RelaySeat> {
    const seat = new RelaySeat(parts, options);
    try {
      await seat.listen();
      if (options.status !== 'unlisted') await seat.list(options.status);
    } catch (error) {
      await seat[Symbol.asyncDispose]();
      throw error;
    }
    return seat;
  }

  /** Listens with the peer key, and makes the descriptor of it; earlier listeners stay. */
  async listen(): Promise<void> {
    const { host, network, target } = this.#parts;
    const { service, dht, identity, seen } = this;
    const descriptor = () => this.shown ?? this.served;
    const parts = { network, target, identity, descriptor, seen, service, dht };
    const peers = seatHost(parts, this.#options.without);
    this.#hosts.push(peers);
    this.#port = (await peers.listen({ host, port: 0 })).port;
    this.served = JSON.stringify(await this.descriptor());
  }

  /** Number of open connections with the relay under test. */
  get connections(): number {
    return this.#hosts.reduce((sum, { connections }) => sum + connections.size, 0);
  }

  /** The address for relays, with the Peer ID of the key. */
  get peerAddress(): string {
    return formatMultiaddr({ ...this.listening, peerId: this.identity.peerId });
  }

  /** The relay as an answer of the DHT names it. */
  get kadPeer(): KadPeer {
    return { id: this.identity.peerId, addrs: [encodeMultiaddr(this.listening)] };
  }

  /** Where it listens, as its descriptor says. */
  get listening(): TcpAddress {
    const { host } = this.#parts;
    const family = { 0: 'dns4', 4: 'ip4', 6: 'ip6' }[isIP(host)] ?? 'dns4';
    return { family, host, port: this.#port };
  }

  /** Signs a descriptor, valid or not, with members replaced. */
  async descriptor(overrides: JsonObject = {}): Promise<JsonObject> {
    const { network } = this.#parts;
    const unsigned = {
      $type: network.type('relay.descriptor'),
      relay_id: this.relayId,
      public_key: this.signer.publicKey,
      endpoints: [this.endpoint, this.peerAddress],
      expires_at: unixSeconds() + 86_400,
      ...overrides,
    };
    const input = descriptorSigningInput(
      network,
      unsigned as Omit<RelayDescriptor, 'relay_signature'>,
    );
    return { ...unsigned, relay_signature: encodeBase64url(await this.signer.sign(input)) };
  }

  /** Enters the relay into the registry. */
  async list(status: RelayEntry['status'] = 'active'): Promise<void> {
    const entry = { relay_id: this.relayId, endpoint: this.endpoint, status };
    await this.#parts.registry.list({ ...entry, updated_at: Date.now() });
  }

  /** Removes the relay from the registry. */
  async unlist(): Promise<void> {
    await this.#parts.registry.unlist([this.relayId]);
  }

  /** Makes an account at home at this relay. */
  async home(): Promise<HomeAccount> {
    const home = await HomeAccount.create(this.#parts.network, this);
    this.service.homes.push(home);
    return home;
  }

  /** Dials the relay under test until it admits this one. @throws Violation if it does not */
  async connect(): Promise<RelayConnection> {
    const deadline = Date.now() + admissionTime * 1_000;
    for (;;) {
      try {
        return await this.dial();
      } catch (error) {
        if (!(error instanceof PeerError)) throw error;
        if (Date.now() > deadline) {
          throw new Violation(`the relay admits a listed relay: ${error.message}`);
        }
        await setTimeout(attemptPause);
      }
    }
  }

  /**
   * Performs a handshake with a payload, valid or not.
   *
   * @param identity the peer key, by default the seat's
   */
  async handshake(payload: MakePayload, identity = this.identity): Promise<HandshakeResult> {
    const protocol = `/${this.#parts.network.word}/relay/1.0.0`;
    return await performHandshake({ address: this.targetAddress, identity, payload, protocol });
  }

  /**
   * Performs handshakes with a payload until the relay admits this one. Before a handshake that must
   * be refused, a valid payload shows that the relay refuses this relay for no other reason.
   *
   * @throws Violation if it does not
   */
  async expectAdmitted(
    payload: MakePayload = payloadWith(this.served),
    what = 'a valid payload',
  ): Promise<HandshakeResult> {
    const deadline = Date.now() + admissionTime * 1_000;
    for (;;) {
      const result = await this.handshake(payload);
      if (result.isAdmitted) return result;
      if (Date.now() > deadline) throw new Violation(`${what} admits a listed relay`);
      await setTimeout(attemptPause);
    }
  }

  /** Dials the relay under test once, and confirms that it answers. @throws PeerError */
  async dial(): Promise<RelayConnection> {
    const host = this.#hosts.at(-1) as PeerHost<RemotePeer>;
    const signal = AbortSignal.timeout(admissionTime * 1_000);
    const connection = await host.dial({ ...this.targetAddress, signal });
    const wrapped = new RelayConnection(connection, this.#parts.network);
    // Another implementation may agree on Yamux before it decides: an answer shows its decision.
    if (!(await wrapped.isServed())) {
      connection.close('the relay serves nothing');
      throw new PeerError('refused', 'the relay answers no request');
    }
    return wrapped;
  }

  /** The address of the relay under test for relays. */
  get targetAddress(): Libp2pAddress {
    for (const item of this.#parts.target.endpoints) {
      const endpoint = classifyEndpoint(item);
      if (endpoint.kind === 'libp2p') return endpoint.address;
    }
    throw new NotApplicable('the relay lists no address for relays');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { name, server } = this.#parts;
    server.remove(name);
    await this.unlist();
    await Promise.all(this.#hosts.map((host) => host[Symbol.asyncDispose]()));
  }
}
