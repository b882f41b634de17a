/** Peer identities: who signs, and how signatures of all four kinds of keys are verified. */
import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { encodePeerKey, type PeerKey, peerIdOfKey } from '@posthouse/protocol/federation';

/** The key of this relay in the network of relays (07 §B2). */
export interface PeerIdentity {
  /** Multihash bytes of the Peer ID. */
  readonly peerId: Uint8Array;
  /** libp2p's protobuf `PublicKey`. */
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

const ed25519PrivateHead = Buffer.from('302e020100300506032b657004220420', 'hex');
/** SPKI in DER up to the key: Ed25519, and secp256k1 with a compressed point. */
const ed25519Head = Buffer.from('302a300506032b6570032100', 'hex');
const secp256k1Head = Buffer.from('3036301006072a8648ce3d020106052b8104000a032200', 'hex');

const sha256 = (data: Uint8Array) => hash('sha256', data, 'buffer');

/** Derives the Peer ID of a key, as multihash bytes. */
export const peerIdOf = (key: PeerKey): Uint8Array => peerIdOfKey({ sha256 }, key);

/**
 * Makes the identity of an Ed25519 seed.
 *
 * @param seed 32 bytes
 * @example
 * const identity = ed25519Identity(seed);
 * const { peerId } = identity;
 */
export function ed25519Identity(seed: Uint8Array): PeerIdentity {
  const der = Buffer.concat([ed25519PrivateHead, seed]);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const key: PeerKey = { type: 'ed25519', data: spki.subarray(ed25519Head.length) };
  return {
    peerId: peerIdOf(key),
    publicKey: encodePeerKey(key),
    sign: (message) => sign(null, message, privateKey),
  };
}

/** Verifies a signature of a peer's key as libp2p defines it for the kind; never throws. */
export function verifyPeerSignature(
  key: PeerKey,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  try {
    const digest = key.type === 'ed25519' ? null : 'sha256';
    return verify(digest, message, importPeerKey(key), signature);
  } catch {
    // A key or signature that cannot be decoded does not verify.
    return false;
  }
}

function importPeerKey({ type, data }: PeerKey): KeyObject {
  const head = type === 'ed25519' ? ed25519Head : type === 'secp256k1' ? secp256k1Head : undefined;
  const key = head === undefined ? Buffer.from(data) : Buffer.concat([head, data]);
  return createPublicKey({ key, format: 'der', type: 'spki' });
}
