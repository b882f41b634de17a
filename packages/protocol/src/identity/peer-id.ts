import { base58 } from '@scure/base';
import { decodeBase32 } from '../encoding/base32.ts';
import { inlinedPeerId, isMultihash, peerPublicKeyOf } from './peer-key.ts';

/**
 * libp2p Peer IDs: the multihash of a peer's public key in protobuf form. Independent of the
 * relay's Neo account (chapter 01, section 12).
 */

/** CIDv1 with the libp2p-key codec. */
const cidHead = [0x01, 0x72] as const;

/**
 * Formats the Peer ID of an Ed25519 public key.
 *
 * @param publicKey 32 bytes
 * @example
 * peerIdOf(publicKeyBytes); // '12D3Koo…', 52 characters
 */
export function peerIdOf(publicKey: Uint8Array): string {
  if (publicKey.length !== 32) throw new TypeError('expected an Ed25519 public key of 32 bytes');
  return formatPeerId(inlinedPeerId({ type: 'ed25519', data: publicKey }));
}

/**
 * Formats multihash bytes in base58btc, the form every libp2p implementation reads.
 *
 * @example
 * formatPeerId(peerIdOfKey(primitives, { type: 'ed25519', data: publicKeyBytes })); // '12D3Koo…'
 */
export function formatPeerId(multihash: Uint8Array): string {
  return base58.encode(multihash);
}

/**
 * Parses a Peer ID in one of its text forms into multihash bytes (base58btc multihash, or CIDv1 in
 * base32 or base58btc); `undefined` if the text is no Peer ID. Two texts name one peer if the bytes
 * are equal.
 *
 * @example
 * const multihash = parsePeerId(text);
 * if (multihash === undefined) throw new TypeError('no Peer ID');
 */
export function parsePeerId(text: string): Uint8Array | undefined {
  if (text.length > 128) return undefined;
  try {
    if (/^[1Q]/.test(text)) return multihashOf(base58.decode(text));
    if (text.startsWith('b')) {
      const bytes = decodeBase32(text.slice(1));
      return bytes && cidMultihash(bytes);
    }
    if (text.startsWith('z')) return cidMultihash(base58.decode(text.slice(1)));
    return undefined;
  } catch {
    // The base decoders refuse characters outside their alphabet by throwing.
    return undefined;
  }
}

/**
 * Returns the Ed25519 public key inside a Peer ID's multihash; `undefined` for keys of other kinds.
 *
 * @example
 * const key = ed25519KeyOfPeer(descriptorPeerId(descriptor));
 */
export function ed25519KeyOfPeer(multihash: Uint8Array): Uint8Array | undefined {
  const key = peerPublicKeyOf(multihash);
  return key?.type === 'ed25519' ? key.data : undefined;
}

function cidMultihash(bytes: Uint8Array): Uint8Array | undefined {
  if (bytes[0] !== cidHead[0] || bytes[1] !== cidHead[1]) return undefined;
  return multihashOf(bytes.subarray(2));
}

/** Returns the bytes if they have the form of a Peer ID. */
function multihashOf(bytes: Uint8Array): Uint8Array | undefined {
  return isMultihash(bytes) ? bytes : undefined;
}
