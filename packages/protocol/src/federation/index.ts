/** Entry `@posthouse/protocol/federation`: what relays exchange with each other, as bytes. */
export { formatPeerId, parsePeerId } from '../identity/peer-id.ts';
export {
  decodePeerKey,
  encodePeerKey,
  type PeerKey,
  peerIdOfKey,
  peerPublicKeyOf,
} from '../identity/peer-key.ts';
export { encodeFrame, FrameError, type FrameFault, FrameReader } from './frame.ts';
export {
  decodeHandshakePayload,
  encodeHandshakePayload,
  type HandshakePayload,
  handshakeSigningInput,
} from './handshake.ts';
export {
  compareDistance,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  encodeFindNode,
} from './keyspace.ts';
export {
  DeviceStatus,
  DeviceStatusQuery,
  encodeRelayNotification,
  encodeRelayRequest,
  type RelayMethodDefinition,
  type RelayMethodName,
  type RelayNotificationName,
  type RelayParamsOf,
  type RelayResponse,
  type RelayResultOf,
  readRelayResponse,
  relayMethods,
  relayNotifications,
} from './rpc.ts';
