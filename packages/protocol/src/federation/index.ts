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
  type CompleteKadRecord,
  checkKadReply,
  checkKadRequest,
  decodeKadMessage,
  decodeKadMessageInSteps,
  encodeFindNode,
  encodeKadMessage,
  type KadBounds,
  type KadCandidate,
  type KadMessage,
  type KadPeer,
  type KadRecord,
  type KadRequest,
  kadCandidates,
  kadTypes,
} from './kad.ts';
export {
  compareDistance,
  compareNearness,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  positionDistance,
} from './keyspace.ts';
export { Lookup, type LookupBounds } from './lookup.ts';
export {
  decodeMultiaddr,
  encodeMultiaddr,
  formatMultiaddr,
  parseMultiaddr,
  type TcpAddress,
} from './multiaddr.ts';
export { type InsertResult, type RoutingEntry, RoutingTable } from './routing-table.ts';
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
  readRelayResponseInSteps,
  relayMethods,
  relayNotifications,
} from './rpc.ts';
