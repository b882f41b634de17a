/** What `node:crypto` lacks, from `@noble/*`: alone in a file, so that a program on Node loads no more of it. */
import { p256 } from '@noble/curves/nist.js';
import { ripemd160 } from '@noble/hashes/legacy.js';
import type { Primitives } from './primitives.ts';

/** P-256 of {@link Primitives}, with signatures by RFC 6979. */
export const nobleP256: Primitives['p256'] = {
  publicKey: (key) => p256.getPublicKey(key, true),
  sign: (key, message) => p256.sign(message, key, { lowS: false }),
  verify(publicKey, message, signature) {
    if (publicKey.length !== 33 || signature.length !== 64) return false;
    try {
      return p256.verify(signature, message, publicKey, { lowS: false });
    } catch {
      return false;
    }
  },
};

/** RIPEMD-160 of {@link Primitives}. */
export const nobleRipemd160: Primitives['ripemd160'] = (data) => ripemd160(data);
