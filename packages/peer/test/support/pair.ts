/** Hosts that are connected already, for tests of what follows. */
import type { PeerConnection, PeerHost, PeerHostOptions } from '../../src/index.ts';
import { anyPort, forever, hostOf, identityOf } from './hosts.ts';
import { RawPeer } from './raw-peer.ts';

type Options = Partial<PeerHostOptions<string>>;

/** The only connection of a host. */
function onlyConnection(host: PeerHost<string>): PeerConnection<string> {
  const [connection] = host.connections;
  if (connection === undefined) throw new Error('the host has no connection');
  return connection;
}

/** A host that listens, as identity 1, and one that has dialled it, as identity 2. */
export class HostPair implements AsyncDisposable {
  readonly listener: PeerHost<string>;
  readonly dialer: PeerHost<string>;
  /** Connection of the dialling side. */
  readonly connection: PeerConnection<string>;
  /** The same connection at the listening side. */
  readonly other: PeerConnection<string>;

  private constructor(
    listener: PeerHost<string>,
    dialer: PeerHost<string>,
    connection: PeerConnection<string>,
  ) {
    this.listener = listener;
    this.dialer = dialer;
    this.connection = connection;
    this.other = onlyConnection(listener);
  }

  static async start(
    options: { readonly listener?: Options; readonly dialer?: Options } = {},
  ): Promise<HostPair> {
    const listener = hostOf(1, options.listener);
    const dialer = hostOf(2, options.dialer);
    const address = await listener.listen(anyPort);
    const { peerId } = identityOf(1);
    const connection = await dialer.dial({ ...address, peerId, signal: forever });
    return new HostPair(listener, dialer, connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Streams that are still open would have their grace.
    this.connection.close('the test is over');
    await this.dialer[Symbol.asyncDispose]();
    await this.listener[Symbol.asyncDispose]();
  }
}

/** A host that listens, as identity 1, and a peer that sends it any bytes, as identity 9. */
export class RawPair implements AsyncDisposable {
  readonly listener: PeerHost<string>;
  readonly port: number;
  readonly peer: RawPeer;
  /** Connection of the host. */
  readonly connection: PeerConnection<string>;

  private constructor(listener: PeerHost<string>, port: number, peer: RawPeer) {
    this.listener = listener;
    this.port = port;
    this.peer = peer;
    this.connection = onlyConnection(listener);
  }

  static async start(options?: Options): Promise<RawPair> {
    const listener = hostOf(1, options);
    const { port } = await listener.listen(anyPort);
    const peer = await RawPeer.connect(port, identityOf(1).peerId);
    return new RawPair(listener, port, peer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.peer[Symbol.dispose]();
    await this.listener[Symbol.asyncDispose]();
  }
}
