/**
 * Sealing a 32-byte key to an X25519 public key: the construction that message key boxes (04 §6.2)
 * and group secret boxes (05 §3.5) share. They differ in their context object only.
 */
import type { Random } from '../crypto/primitives.ts';
import { type KeyToSeal, type SealedKey, sealKey } from '../crypto/seal-key.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { ProtocolError } from '../errors.ts';
import type { Network } from '../identity/network.ts';

/** Name of the construction in `alg`. */
export const keyWrapAlgorithm = 'X25519-HKDF-SHA256-AES256GCM';

/**
 * Seals a key. Draws 32 bytes for the ephemeral private key, then 12 for the nonce.
 *
 * @param input.info makes the context bytes for an `enc`; they are KDF info and box AAD at once
 * @throws ProtocolError `bad_request` for a public key whose shared secret is all zero (01 E2)
 */
export function wrapKey(
  network: Network,
  input: {
    /** X25519 public key of the receiver, base64url. */
    readonly publicKey: string;
    readonly info: (enc: string) => Uint8Array;
    /** The 32 bytes to seal. */
    readonly key: Uint8Array;
    readonly random: Random;
  },
): { enc: string; sealed: string } {
  return wrappedKey(
    sealKey(network.primitives, {
      ...sealingInput(network, input),
      info: (enc) => input.info(encodeBase64url(enc)),
      key: input.key,
    }),
  );
}

/**
 * Returns what sealing to a public key needs, except for context and key. Draws 32 bytes for the
 * ephemeral private key, then 12 for the nonce.
 *
 * @throws ProtocolError `bad_request` for a public key that is not canonical base64url
 */
export function sealingInput(
  network: Network,
  { publicKey, random }: { readonly publicKey: string; readonly random: Random },
): Omit<KeyToSeal, 'info' | 'key'> {
  const receiver = decodeBase64url(publicKey);
  if (receiver === undefined) throw unusableKey();
  return { receiver, ephemeral: random(32), nonce: random(12), salt: wrappingSalt(network) };
}

/**
 * Encodes a sealed key.
 *
 * @throws ProtocolError `bad_request` if it was not sealed: the shared secret is all zero (01 E2)
 */
export function wrappedKey(sealed: SealedKey | undefined): { enc: string; sealed: string } {
  if (sealed === undefined) throw unusableKey();
  return { enc: encodeBase64url(sealed.enc), sealed: encodeBase64url(sealed.sealed) };
}

const unusableKey = () => new ProtocolError('bad_request', 'unusable encryption key');

/**
 * Opens a sealed key with the receiver's X25519 private key.
 * @returns the 32 bytes, or `undefined` for an all-zero shared secret, a failed authentication or
 *   a key of another length
 */
export function unwrapKey(
  network: Network,
  input: {
    readonly privateKey: Uint8Array;
    readonly enc: string;
    readonly sealed: string;
    readonly info: Uint8Array;
  },
): Uint8Array | undefined {
  const { x25519, hkdfSha256, aesGcm } = network.primitives;
  const enc = decodeBase64url(input.enc);
  const sealed = decodeBase64url(input.sealed);
  if (enc?.length !== 32 || sealed?.length !== 60) return undefined;
  const shared = x25519.shared(input.privateKey, enc);
  if (shared === undefined) return undefined;
  const salt = wrappingSalt(network);
  return aesGcm.open({
    key: hkdfSha256({ secret: shared, salt, info: input.info, length: 32 }),
    nonce: sealed.subarray(0, 12),
    aad: input.info,
    data: sealed.subarray(12),
  });
}

const wrappingSalt = (network: Network) => network.salt('keybox-salt/v1');
