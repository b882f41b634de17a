/**
 * Public keys of libp2p peers: the protobuf `PublicKey` with a type and data, of all four kinds.
 * The handshake of relays sends it as `identity_key` (chapter 07, section B3); the Peer ID is a
 * multihash of its canonical form.
 */
import type { Primitives } from '../crypto/primitives.ts';
import { concatBytes, equalBytes } from '../encoding/bytes.ts';
import {
  bytesField,
  encodeBytesField,
  encodeVarintField,
  readProtobuf,
  varintField,
} from '../encoding/protobuf.ts';
import { badRequest } from '../errors.ts';
import { checkEcdsaKey, checkRsaKey } from './der-keys.ts';

/** The kinds of peer keys; the position of each is its number in the protobuf enum. */
const peerKeyTypes = ['rsa', 'ed25519', 'secp256k1', 'ecdsa'] as const;

/** A peer's public key. */
export interface PeerKey {
  readonly type: (typeof peerKeyTypes)[number];
  /**
   * By type: Ed25519 32 bytes; secp256k1 the compressed point, 33 bytes; RSA and ECDSA a
   * SubjectPublicKeyInfo in DER, with an RSA modulus of 2,048 to 8,192 bits, or of curve P-256,
   * P-384 or P-521.
   */
  readonly data: Uint8Array;
}

const field = { type: 1, data: 2 } as const;

/** Multihash codes. */
const identityHash = 0x00;
const sha256Hash = 0x12;
/** Encoded keys up to this length are included in the Peer ID itself. */
const inlinedBytes = 42;

/**
 * Encodes a peer key as canonical protobuf: `type`, then `data`, nothing else.
 *
 * @throws ProtocolError `bad_request` if the data does not fit the type
 * @example
 * const encoded = encodePeerKey({ type: 'ed25519', data: publicKeyBytes }); // 36 bytes
 */
export function encodePeerKey(key: PeerKey): Uint8Array {
  checkPeerKey(key);
  const type = encodeVarintField(field.type, peerKeyTypes.indexOf(key.type));
  return concatBytes(type, encodeBytesField(field.data, key.data));
}

/**
 * Decodes the protobuf of a peer key. If a field is repeated, its last value counts; unknown fields
 * are ignored. The input may be in another than the canonical form, so a Peer ID is derived from the
 * result, never from the input.
 *
 * @throws ProtocolError `bad_request` for an encoding error, a missing field, an unknown type, or
 * data that does not fit the type
 * @example
 * const key = decodePeerKey(bytes);
 * const peerId = formatPeerId(peerIdOfKey(primitives, key));
 */
export function decodePeerKey(bytes: Uint8Array): PeerKey {
  let number: number | undefined;
  let data: Uint8Array | undefined;
  for (const [name, value] of readProtobuf(bytes, 'peer key')) {
    if (name === field.type) number = varintField(value, 'peer key.type');
    else if (name === field.data) data = bytesField(value, 'peer key.data');
  }
  const type = number === undefined ? undefined : peerKeyTypes[number];
  if (type === undefined) throw badRequest('peer key.type', 'expected one of 0 to 3');
  if (data === undefined) throw badRequest('peer key.data', 'missing');
  const key = { type, data: data.slice() };
  checkPeerKey(key);
  return key;
}

/**
 * Derives the Peer ID of a key, as multihash bytes: encoded keys up to 42 bytes are included
 * themselves, longer ones as their SHA-256.
 *
 * @throws ProtocolError `bad_request` if the data does not fit the type
 * @example
 * const multihash = peerIdOfKey(primitives, { type: 'ed25519', data: publicKeyBytes });
 */
export function peerIdOfKey(primitives: Pick<Primitives, 'sha256'>, key: PeerKey): Uint8Array {
  const encoded = encodePeerKey(key);
  return encoded.length <= inlinedBytes
    ? multihash(identityHash, encoded)
    : multihash(sha256Hash, primitives.sha256(encoded));
}

/** Derives the Peer ID of an Ed25519 or secp256k1 key, which needs no digest. */
export function inlinedPeerId(key: PeerKey & { type: 'ed25519' | 'secp256k1' }): Uint8Array {
  return multihash(identityHash, encodePeerKey(key));
}

/**
 * Returns the public key that a Peer ID's multihash includes; `undefined` if it has only a digest of
 * the key, or if what it includes is not the canonical form of a key.
 *
 * @example
 * const key = peerPublicKeyOf(descriptorPeerId(descriptor)); // { type: 'ed25519', data: … }
 */
export function peerPublicKeyOf(multihash: Uint8Array): PeerKey | undefined {
  if (!isMultihash(multihash) || multihash[0] !== identityHash) return undefined;
  try {
    const key = decodePeerKey(multihash.subarray(2));
    return equalBytes(encodePeerKey(key), multihash.subarray(2)) ? key : undefined;
  } catch {
    // Bytes that are no key are not an error here: Peer IDs come from texts of others.
    return undefined;
  }
}

/** Returns whether bytes have the form of a Peer ID: SHA-256 of a key, or a key up to 42 bytes. */
export function isMultihash(bytes: Uint8Array): boolean {
  const [code, length] = bytes;
  if (length !== bytes.length - 2) return false;
  if (code === sha256Hash) return length === 32;
  return code === identityHash && length > 2 && length <= inlinedBytes;
}

function multihash(code: number, digest: Uint8Array): Uint8Array {
  return concatBytes(Uint8Array.of(code, digest.length), digest);
}

function checkPeerKey({ type, data }: PeerKey): void {
  switch (type) {
    case 'ed25519':
      if (data.length !== 32) throw badRequest('peer key.data', 'expected 32 bytes');
      return;
    case 'secp256k1':
      if (data.length !== 33 || (data[0] !== 2 && data[0] !== 3)) {
        throw badRequest('peer key.data', 'expected a compressed point of 33 bytes');
      }
      return;
    case 'rsa':
      checkRsaKey(data);
      return;
    case 'ecdsa':
      checkEcdsaKey(data);
  }
}
