/** All vector files of `packages/protocol/vectors`, made anew: always the same bytes. */
import { grantVectors, inviteVectors } from './contacts.ts';
import { accountVectors, networkVectors, signatureVectors } from './crypto.ts';
import {
  base64urlVectors,
  jsonVectors,
  rpcFaultVectors,
  textVectors,
  varintVectors,
} from './encoding.ts';
import { dhtVectors, frameVectors, kadVectors, relayRpcVectors } from './federation.ts';
import type { VectorFile } from './fixture.ts';
import { channelVectors, groupVectors } from './hosted.ts';
import { certificateVectors, deviceStateVectors, profileVectors } from './identity.ts';
import { contentVectors, envelopeVectors, messageVectors, payloadVectors } from './messages.ts';
import { handshakeVectors, peerKeyVectors } from './peers.ts';
import { relayRequestVectors } from './relay-requests.ts';
import { authVectors, descriptorVectors, routeVectors } from './relays.ts';

const makers: Readonly<Record<string, () => VectorFile>> = {
  accounts: accountVectors,
  auth: authVectors,
  base64url: base64urlVectors,
  certificates: certificateVectors,
  channels: channelVectors,
  content: contentVectors,
  descriptors: descriptorVectors,
  'device-states': deviceStateVectors,
  dht: dhtVectors,
  envelopes: envelopeVectors,
  frames: frameVectors,
  grants: grantVectors,
  groups: groupVectors,
  handshakes: handshakeVectors,
  invites: inviteVectors,
  json: jsonVectors,
  kad: kadVectors,
  messages: messageVectors,
  network: networkVectors,
  payloads: payloadVectors,
  'peer-keys': peerKeyVectors,
  profiles: profileVectors,
  'relay-requests': relayRequestVectors,
  'relay-rpc': relayRpcVectors,
  routes: routeVectors,
  'rpc-faults': rpcFaultVectors,
  signatures: signatureVectors,
  texts: textVectors,
  varint: varintVectors,
};

/** Text of every file by its name without `.json`. */
export function makeVectors(): Map<string, string> {
  return new Map(Object.entries(makers).map(([name, make]) => [name, make().text()]));
}
