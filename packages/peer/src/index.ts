/** The wire between relays: Noise, Yamux and multistream-select of libp2p (07 §B2, §B3). */
export { addressKey } from './address-key.ts';
export { ByteTotal } from './byte-pool.ts';
export type { PeerClock } from './clock.ts';
export type { PeerConnection, PeerProtocol, RemotePeer } from './connection.ts';
export { rejectOnAbort } from './deadlines.ts';
export { PeerError, type PeerErrorCode } from './errors.ts';
export { type PeerAddress, PeerHost, type PeerHostOptions, type PeerObserver } from './host.ts';
export { ed25519Identity, type PeerIdentity } from './identity.ts';
export { defaultPeerLimits, type PeerLimits } from './limits.ts';
export type { PeerStream } from './peer-stream.ts';
export { Slots } from './slots.ts';
export type { WorkTurns } from './turns.ts';
