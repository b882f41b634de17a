/** Another relay as this one meets it: keys, a registry record, a descriptor served over HTTPS. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import {
  accountSigner,
  type DescriptorFields,
  deriveRelayId,
  descriptorPeerId,
  peerIdOf,
  type RelayDescriptor,
  type RelayEntry,
  signDescriptor,
} from '@posthouse/protocol';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import type { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { network } from '../support/modules.ts';

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  /** PEM of the authority that issued it. */
  readonly authority: string;
}

/** Issues a certificate by an authority of its own. */
export async function testCertificate(
  hosts: readonly string[] = ['127.0.0.1', 'localhost', '::ffff:127.0.0.1'],
): Promise<TestCertificate> {
  using folder = temporaryFolder();
  const now = Math.floor(Date.now() / 1_000);
  const { cert, key, authorityFile } = await devCertificate(folder.path, hosts, now);
  return { cert, key, authority: readFileSync(authorityFile, 'utf8') };
}

/** Answers one request for a descriptor. */
export type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** An HTTPS server on loopback that counts its requests. */
export class DescriptorServer implements AsyncDisposable {
  readonly #server: Server;
  requests = 0;
  connections = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(certificate: TestCertificate, answer: Answer): Promise<DescriptorServer> {
    const server = createServer(certificate);
    const started = new DescriptorServer(server);
    server.on('request', (request, response) => {
      started.requests += 1;
      answer(response, request);
    });
    server.on('connection', () => {
      started.connections += 1;
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return started;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

/** The Peer ID of a key made from one byte. */
export const peerText = (byte: number) => peerIdOf(new Uint8Array(32).fill(byte));

/** A relay with an HTTPS endpoint; the libp2p address in its descriptor is one that no test dials. */
export class RemoteRelay implements AsyncDisposable {
  readonly #byte: number;
  readonly #clock: ManualClock;
  #server: DescriptorServer | undefined;
  /** The answer to the next requests, instead of its descriptor. */
  answer: Answer | undefined;
  /** The byte of its peer key. */
  peerByte: number;

  private constructor(byte: number, clock: ManualClock) {
    this.#byte = byte;
    this.#clock = clock;
    this.peerByte = byte;
  }

  static async start(
    byte: number,
    clock: ManualClock,
    certificate: TestCertificate,
  ): Promise<RemoteRelay> {
    const relay = new RemoteRelay(byte, clock);
    relay.#server = await DescriptorServer.start(certificate, (response, request) => {
      if (relay.answer !== undefined) relay.answer(response, request);
      else if (request.url !== '/svc/v1/relay/descriptor') response.writeHead(404).end();
      else void relay.descriptor().then((descriptor) => response.end(JSON.stringify(descriptor)));
    });
    return relay;
  }

  get signer() {
    return accountSigner(network, new Uint8Array(32).fill(this.#byte));
  }

  get relayId(): string {
    return deriveRelayId(network, this.signer.publicKey);
  }

  get endpoint(): string {
    return `https://127.0.0.1:${this.#server?.port}/svc/v1`;
  }

  /** Requests for its descriptor so far. */
  get requests(): number {
    return this.#server?.requests ?? 0;
  }

  entry(status: RelayEntry['status'] = 'active'): RelayEntry {
    return { relay_id: this.relayId, endpoint: this.endpoint, status, updated_at: 1 };
  }

  /** Its descriptor, of a day unless a test says otherwise. */
  async descriptor(fields: Partial<DescriptorFields> = {}): Promise<RelayDescriptor> {
    return await signDescriptor(network, this.signer, {
      endpoints: [this.endpoint, `/ip4/127.0.0.1/tcp/4201/p2p/${peerText(this.peerByte)}`],
      expires_at: this.#clock.now() + 86_400,
      ...fields,
    });
  }

  /** What its handshake proves. */
  async handshake(fields: Partial<DescriptorFields> = {}) {
    const descriptor = await this.descriptor(fields);
    return {
      peerId: descriptorPeerId(descriptor),
      descriptor: JSON.stringify(descriptor),
      address: `192.0.2.${this.#byte}`,
      direction: 'inbound' as const,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }
}
