/**
 * The primitives of `@posthouse/protocol` on `node:crypto`: ten times the speed of pure JavaScript
 * for verification. Used by the relay, and by the client on Node.
 */
import { createHmac, hash, type KeyObject, randomBytes, sign, verify } from 'node:crypto';
import { isAcceptableEd25519Key, isAcceptableEd25519Signature } from '../crypto/ed25519-keys.ts';
import { nobleP256, nobleRipemd160 } from '../crypto/noble-only.ts';
import type { Primitives, Random, SignatureCheck } from '../crypto/primitives.ts';
import { importPrivate, importPublic, rawPublicKey } from './raw-keys.ts';
import { nodeSealing } from './sealing.ts';

/**
 * Imports a public key for `crypto.verify`; `undefined` if the encoding is not acceptable.
 * Importing costs a good part of a verification: reuse the result for further signatures of the
 * key.
 *
 * @example
 * const imported = importPublicKey('ed25519', publicKeyBytes);
 */
export function importPublicKey(
  scheme: SignatureCheck['scheme'],
  key: Uint8Array,
): KeyObject | undefined {
  try {
    if (scheme === 'ed25519') {
      return isAcceptableEd25519Key(key) ? importPublic('ed25519', key) : undefined;
    }
    return key.length === 33 ? importPublic('p256', key) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns whether key and signature may go to a library at all: their lengths, and for Ed25519 the
 * profile of 01 §5.2, in which libraries differ.
 *
 * @example
 * const signature = new Uint8Array(63);
 * isAcceptableCheck({ scheme: 'p256', publicKey: publicKeyBytes, signature }); // false
 */
export function isAcceptableCheck({
  scheme,
  publicKey,
  signature,
}: Pick<SignatureCheck, 'scheme' | 'publicKey' | 'signature'>): boolean {
  return scheme === 'ed25519'
    ? isAcceptableEd25519Key(publicKey) && isAcceptableEd25519Signature(signature)
    : publicKey.length === 33 && signature.length === 64;
}

/**
 * Returns the arguments of `crypto.verify` for a scheme: digest, and how the signature is laid out.
 *
 * @example
 * const imported = importPublicKey('p256', publicKeyBytes);
 * if (imported !== undefined) console.log(verifyOptions('p256', imported).digest); // 'sha256'
 */
export function verifyOptions(scheme: SignatureCheck['scheme'], key: KeyObject) {
  return scheme === 'ed25519'
    ? { digest: null, key }
    : { digest: 'sha256', key: { key, dsaEncoding: 'ieee-p1363' as const } };
}

function verifyWith(
  scheme: SignatureCheck['scheme'],
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (!isAcceptableCheck({ scheme, publicKey, signature })) return false;
  const key = importPublicKey(scheme, publicKey);
  if (key === undefined) return false;
  const options = verifyOptions(scheme, key);
  return verify(options.digest, message, options.key, signature);
}

/** {@link Primitives} on `node:crypto`. P-256 signs with noble, which follows RFC 6979. */
export const nodePrimitives: Primitives = {
  ...nodeSealing,
  // One call: a hash object has memory of its own, and collecting it costs more than a short hash.
  sha256: (data) => hash('sha256', data, 'buffer'),
  // OpenSSL 3 keeps RIPEMD-160 in its legacy provider, which is not always there.
  ripemd160: nobleRipemd160,
  hmacSha256: (key, data) => createHmac('sha256', key).update(data).digest(),
  ed25519: {
    publicKey: (seed) => rawPublicKey(importPrivate('ed25519', seed)),
    sign: (seed, message) => sign(null, message, importPrivate('ed25519', seed)),
    verify: (key, message, signature) => verifyWith('ed25519', key, message, signature),
  },
  p256: {
    publicKey: nobleP256.publicKey,
    sign: nobleP256.sign,
    verify: (key, message, signature) => verifyWith('p256', key, message, signature),
  },
};

/** Secure random bytes of the operating system. */
export const nodeRandom: Random = (length) => randomBytes(length);
