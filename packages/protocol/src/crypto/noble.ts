import { gcm } from '@noble/ciphers/aes.js';
import { ed25519, x25519 } from '@noble/curves/ed25519.js';
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, equalBytes } from '../encoding/bytes.ts';
import { isAcceptableEd25519Key, isAcceptableEd25519Signature } from './ed25519-keys.ts';
import { nobleP256, nobleRipemd160 } from './noble-only.ts';
import type { Primitives } from './primitives.ts';

/** {@link Primitives} on `@noble/*`: for browsers, and the second opinion in tests. */
export const noblePrimitives: Primitives = {
  // A spread would make bundlers keep all of this: it could have effects.
  ripemd160: nobleRipemd160,
  p256: nobleP256,
  sha256: (data) => sha256(data),
  hkdfSha256: ({ secret, salt, info, length }) => hkdf(sha256, secret, salt, info, length),
  hmacSha256: (key, data) => hmac(sha256, key, data),
  ed25519: {
    publicKey: (seed) => ed25519.getPublicKey(seed),
    sign: (seed, message) => ed25519.sign(message, seed),
    verify: verifyEd25519,
  },
  x25519: {
    publicKey: (key) => x25519.getPublicKey(key),
    shared: sharedSecret,
    agree(privateKey, publicKey) {
      const shared = sharedSecret(privateKey, publicKey);
      return shared && { publicKey: x25519.getPublicKey(privateKey), shared };
    },
  },
  aesGcm: {
    seal: ({ key, nonce, aad, data }) => gcm(key, nonce, aad).encrypt(data),
    open({ key, nonce, aad, data }) {
      try {
        return gcm(key, nonce, aad).decrypt(data);
      } catch {
        return undefined;
      }
    },
  },
};

function sharedSecret(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined {
  if (publicKey.length !== 32) return undefined;
  try {
    return x25519.getSharedSecret(privateKey, publicKey);
  } catch {
    // noble refuses an all-zero result by throwing (01 E4).
    return undefined;
  }
}

/** The order of the group. */
const order = ed25519.Point.Fn.ORDER;

/**
 * RFC 8032 verification without the cofactor, as `node:crypto` does it: noble's own check
 * multiplies by eight and so accepts signatures that OpenSSL refuses.
 */
function verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (!isAcceptableEd25519Key(publicKey) || !isAcceptableEd25519Signature(signature)) return false;
  const encodedR = signature.subarray(0, 32);
  const s = littleEndianInteger(signature.subarray(32));
  try {
    const a = ed25519.Point.fromBytes(publicKey);
    const k = littleEndianInteger(sha512(concatBytes(encodedR, publicKey, message))) % order;
    const left = s === 0n ? ed25519.Point.ZERO : ed25519.Point.BASE.multiplyUnsafe(s);
    const r = left.subtract(a.multiplyUnsafe(k));
    return equalBytes(r.toBytes(), encodedR);
  } catch {
    return false;
  }
}

/** Returns the integer whose least significant byte comes first. */
function littleEndianInteger(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    value = (value << 8n) | BigInt(bytes[index] as number);
  }
  return value;
}
