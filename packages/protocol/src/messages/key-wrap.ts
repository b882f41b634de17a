/**
 * Sealing a 32-byte key to an X25519 public key: the construction that message key boxes (04 §6.2)
 * and group secret boxes (05 §3.5) share. They differ in their context object only.
 */
import type { Random } from '../crypto/primitives.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { concatBytes } from '../encoding/bytes.ts';
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
  const { x25519, aesGcm } = network.primitives;
  const ephemeral = input.random(32);
  const receiver = decodeBase64url(input.publicKey);
  const shared = receiver === undefined ? undefined : x25519.shared(ephemeral, receiver);
  if (shared === undefined) throw new ProtocolError('bad_request', 'unusable encryption key');
  const enc = encodeBase64url(x25519.publicKey(ephemeral));
  const info = input.info(enc);
  const nonce = input.random(12);
  const key = wrappingKey(network, shared, info);
  const sealed = aesGcm.seal({ key, nonce, aad: info, data: input.key });
  return { enc, sealed: encodeBase64url(concatBytes(nonce, sealed)) };
}

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
  const { x25519, aesGcm } = network.primitives;
  const enc = decodeBase64url(input.enc);
  const sealed = decodeBase64url(input.sealed);
  if (enc?.length !== 32 || sealed?.length !== 60) return undefined;
  const shared = x25519.shared(input.privateKey, enc);
  if (shared === undefined) return undefined;
  return aesGcm.open({
    key: wrappingKey(network, shared, input.info),
    nonce: sealed.subarray(0, 12),
    aad: input.info,
    data: sealed.subarray(12),
  });
}

function wrappingKey(network: Network, secret: Uint8Array, info: Uint8Array): Uint8Array {
  const salt = network.salt('keybox-salt/v1');
  return network.primitives.hkdfSha256({ secret, salt, info, length: 32 });
}
