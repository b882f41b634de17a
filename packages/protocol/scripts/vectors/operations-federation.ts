/** Operations on what relays send each other (chapter 07, parts B and C). */
import {
  checkKadReply,
  checkKadRequest,
  decodeHandshakePayload,
  decodeKadMessage,
  decodeMultiaddr,
  decodePeerKey,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
  encodeFindNode,
  encodeFrame,
  encodeMultiaddr,
  encodePeerKey,
  FrameError,
  FrameReader,
  formatMultiaddr,
  formatPeerId,
  handshakeSigningInput,
  type KadMessage,
  kadCandidates,
  type PeerKey,
  parseMultiaddr,
  parsePeerId,
  peerIdOfKey,
  peerPublicKeyOf,
  readRelayResponse,
} from '../../src/federation/index.ts';
import { fromHex, hex, ProtocolError } from '../../src/index.ts';
import type { JsonObject, JsonValue } from '../../src/json/index.ts';
import { type Operation, operation } from './operation.ts';

/** More than any case has, so that the vectors do not depend on a relay's own bounds. */
const bounds = { peers: 40, addresses: 8 };

const keyJson = ({ type, data }: PeerKey) => ({ type, data_hex: hex(data) });

function peerIdOf(text: string): Uint8Array {
  const multihash = parsePeerId(text);
  if (multihash === undefined) throw new ProtocolError('bad_request', 'not a Peer ID');
  return multihash;
}

function messageJson({ type, key, record, closerPeers = [] }: KadMessage): JsonObject {
  return {
    type,
    ...(key === undefined ? {} : { key_hex: hex(key) }),
    ...(record === undefined ? {} : { record: recordJson(record) }),
    closer_peers: closerPeers.map(({ id, addrs }) => ({
      id_hex: hex(id),
      addrs_hex: addrs.map(hex),
    })),
  };
}

function recordJson({ key, value }: NonNullable<KadMessage['record']>): JsonObject {
  return {
    ...(key === undefined ? {} : { key_hex: hex(key) }),
    ...(value === undefined ? {} : { value_hex: hex(value) }),
  };
}

const peers: Record<string, Operation> = {
  'peer_key.decode': operation<{ hex: string }>(({ primitives }, given) => {
    const key = decodePeerKey(fromHex(given.hex));
    const multihash = peerIdOfKey(primitives, key);
    return {
      ...keyJson(key),
      canonical_hex: hex(encodePeerKey(key)),
      multihash_hex: hex(multihash),
      peer_id: formatPeerId(multihash),
    };
  }),
  'peer_id.parse': operation<{ peer_id: string }>((_network, { peer_id }) => {
    const multihash = peerIdOf(peer_id);
    const key = peerPublicKeyOf(multihash);
    return {
      multihash_hex: hex(multihash),
      ...(key === undefined ? {} : { key: keyJson(key) }),
    };
  }),
  'multiaddr.decode': operation<{ hex: string }>((_network, given) => {
    const address = decodeMultiaddr(fromHex(given.hex));
    if (address === undefined) throw new ProtocolError('bad_request', 'not a TCP address');
    return { text: formatMultiaddr(address) };
  }),
  'multiaddr.encode': operation<{ text: string }>((_network, { text }) => {
    const address = parseMultiaddr(text);
    if (address === undefined) throw new ProtocolError('bad_request', 'not a TCP address');
    return { hex: hex(encodeMultiaddr(address)) };
  }),
};

const handshakes: Record<string, Operation> = {
  'handshake.decode': operation<{ hex: string }>((_network, given) => {
    const payload = decodeHandshakePayload(fromHex(given.hex));
    return {
      identity_key_hex: hex(payload.identityKey),
      identity_sig_hex: hex(payload.identitySignature),
      relay_descriptor: payload.descriptor,
    };
  }),
  'handshake.verify': operation<{ hex: string; noise_public_key_hex: string }>(
    ({ primitives }, given) => {
      const payload = decodeHandshakePayload(fromHex(given.hex));
      const key = decodePeerKey(payload.identityKey);
      if (key.type !== 'ed25519') throw new Error('the cases have Ed25519 keys only');
      const message = handshakeSigningInput(fromHex(given.noise_public_key_hex));
      if (!primitives.ed25519.verify(key.data, message, payload.identitySignature)) {
        throw new ProtocolError('invalid_signature', 'identity_sig');
      }
      return {
        signed_hex: hex(message),
        peer_id: formatPeerId(peerIdOfKey(primitives, key)),
        relay_descriptor: payload.descriptor,
      };
    },
  ),
};

const streams: Record<string, Operation> = {
  'frames.read': operation<{ chunks_hex: string[]; maximum: number }>((_network, given) => {
    const reader = new FrameReader(given.maximum);
    const frames: JsonValue[] = [];
    try {
      for (const chunk of given.chunks_hex) {
        for (const frame of reader.push(fromHex(chunk))) frames.push(hex(frame));
      }
      reader.end();
      return { frames_hex: frames };
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return { frames_hex: frames, fault: error.fault };
    }
  }),
  'relay_rpc.response': operation<{ text: string; id: string | number }>(
    (_network, { text, id }) => {
      const response = readRelayResponse(text, id);
      switch (response.kind) {
        case 'result':
          return { result: response.value };
        case 'refused': {
          const { code, message, retryAfter } = response;
          const retry = retryAfter === undefined ? {} : { retry_after: retryAfter };
          return { refused: { code, message, ...retry } };
        }
        case 'invalid':
          throw new ProtocolError('bad_gateway', response.why);
      }
    },
  ),
};

const dht: Record<string, Operation> = {
  'dht.route_key': operation<{ account: string }>((network, { account }) => {
    const key = deriveRouteKey(network, account);
    const request = encodeFindNode(key);
    return {
      key_hex: hex(key),
      position_hex: hex(dhtPosition(network.primitives, key)),
      find_node_frame_hex: hex(encodeFrame(request)),
    };
  }),
  'dht.distance': operation<{ key_hex: string; peer_id: string }>(({ primitives }, given) => {
    const peer = peerIdOf(given.peer_id);
    return {
      position_hex: hex(dhtPosition(primitives, peer)),
      distance_hex: hex(dhtDistance(primitives, fromHex(given.key_hex), peer)),
    };
  }),
  'kad.decode': operation<{ hex: string }>((_network, given) =>
    messageJson(decodeKadMessage(fromHex(given.hex), bounds)),
  ),
  'kad.request': operation<{ hex: string }>((_network, given) => {
    const message = decodeKadMessage(fromHex(given.hex), bounds);
    checkKadRequest(message);
    return messageJson(message);
  }),
  'kad.reply': operation<{ request_hex: string; hex: string }>((_network, given) => {
    const request = decodeKadMessage(fromHex(given.request_hex), bounds);
    checkKadRequest(request);
    const reply = decodeKadMessage(fromHex(given.hex), bounds);
    checkKadReply(request, reply);
    return {
      ...(reply.record === undefined ? {} : { record: recordJson(reply.record) }),
      candidates: kadCandidates(reply).map(({ peerId, addresses }) => ({
        peer_id: formatPeerId(peerId),
        addresses: addresses.map(formatMultiaddr),
      })),
    };
  }),
};

export const federation: Record<string, Operation> = {
  ...peers,
  ...handshakes,
  ...streams,
  ...dht,
};
