/**
 * identify 1.0.0: answers which protocols this relay serves. Chapter 07 does not ask for it, but
 * Kademlia of libp2p learns a peer's protocols from nothing else.
 */
import { encodeVarint } from '@posthouse/protocol';
import type { PeerIdentity } from './identity.ts';

export const identifyProtocol = '/ipfs/id/1.0.0';

/** Field numbers of the message `Identify` that this relay sends; each has bytes. */
const field = { publicKey: 1, protocols: 3, protocolVersion: 5, agentVersion: 6 } as const;

/** Encodes the message. */
export function encodeIdentify(options: {
  readonly identity: PeerIdentity;
  readonly protocols: Iterable<string>;
  readonly agent: string;
}): Uint8Array {
  const bytesField = (number: number, value: Uint8Array) =>
    Buffer.concat([Uint8Array.of(number * 8 + 2), encodeVarint(BigInt(value.length)), value]);
  return Buffer.concat([
    bytesField(field.publicKey, options.identity.publicKey),
    ...[...options.protocols].map((one) => bytesField(field.protocols, Buffer.from(one))),
    bytesField(field.protocolVersion, Buffer.from('ipfs/0.1.0')),
    bytesField(field.agentVersion, Buffer.from(options.agent)),
  ]);
}
