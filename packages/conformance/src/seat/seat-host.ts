import {
  defaultPeerLimits,
  PeerError,
  PeerHost,
  type PeerIdentity,
  type PeerProtocol,
  type RemotePeer,
} from '@posthouse/peer';
import { descriptorPeerId, type Network, type RelayDescriptor } from '@posthouse/protocol';
import { formatPeerId } from '@posthouse/protocol/federation';
import type { DhtService } from './dht-service.ts';
import type { RelayService } from './relay-service.ts';

/** The relay under test dials from one address. */
const limits = {
  ...defaultPeerLimits,
  handshakesPerAddress: 64,
  handshakeRate: 1_000,
  handshakeBurst: 1_000,
  stopGrace: 100,
};

export interface SeatHostParts {
  readonly network: Network;
  /** Descriptor of the relay under test. */
  readonly target: RelayDescriptor;
  readonly identity: PeerIdentity;
  /** Returns the text of the descriptor that is sent in handshakes. */
  readonly descriptor: () => string;
  /** Gets what the relay under test sends in handshakes. */
  readonly seen: RemotePeer[];
  readonly service: RelayService;
  readonly dht: DhtService;
}

/** Makes the host of a relay of the kit, which admits the relay under test alone. */
export function seatHost(parts: SeatHostParts, without?: 'rpc' | 'dht'): PeerHost<RemotePeer> {
  const { network, target, identity, descriptor, seen, service, dht } = parts;
  const targetPeer = formatPeerId(descriptorPeerId(target));
  const rpcProtocol: PeerProtocol<RemotePeer> = {
    streams: 64,
    serve: (stream) => service.serveRpc(stream),
  };
  const dhtProtocol: PeerProtocol<RemotePeer> = {
    streams: 64,
    serve: (stream) => dht.serve(stream),
  };
  return new PeerHost<RemotePeer>({
    identity,
    descriptor,
    admit: async (remote) => {
      // Whether the relay under test proves what it should is a check of its own.
      seen.push(remote);
      if (formatPeerId(remote.peerId) === targetPeer) return remote;
      throw new PeerError('refused', 'another relay than the one under test');
    },
    protocols: new Map([
      ...(without === 'rpc' ? [] : [[`/${network.word}/relay/1.0.0`, rpcProtocol] as const]),
      ...(without === 'dht' ? [] : [[`/${network.word}/kad/1.0.0`, dhtProtocol] as const]),
    ]),
    limits,
    agent: 'posthouse-conformance',
  });
}
