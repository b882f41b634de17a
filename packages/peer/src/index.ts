/** The wire between relays: Noise, Yamux and multistream-select of libp2p (07 §B2, §B3). */
export { PeerError, type PeerErrorCode } from './errors.ts';
export { defaultPeerLimits, type PeerLimits } from './limits.ts';
