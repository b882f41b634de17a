/**
 * The primitives that {@link sealKey} needs, on `node:crypto` alone: an entry of its own, so that a
 * worker thread loads no more.
 */
import {
  createCipheriv,
  createDecipheriv,
  diffieHellman,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import type { Primitives } from '../crypto/primitives.ts';
import { concatBytes } from '../encoding/bytes.ts';
import { importPrivate, importPublic, rawPublicKey } from './raw-keys.ts';

export { sealKey } from '../crypto/seal-key.ts';

/** X25519, HKDF-SHA-256 and AES-256-GCM of {@link Primitives} on `node:crypto`. */
export const nodeSealing: Pick<Primitives, 'x25519' | 'hkdfSha256' | 'aesGcm'> = {
  hkdfSha256: ({ secret, salt, info, length }) =>
    new Uint8Array(hkdfSync('sha256', secret, salt, info, length)),
  x25519: {
    publicKey: (key) => rawPublicKey(importPrivate('x25519', key)),
    shared: (ownKey, peerKey) => sharedSecret(importPrivate('x25519', ownKey), peerKey),
    agree(ownKey, peerKey) {
      // Importing is the dearest part.
      const own = importPrivate('x25519', ownKey);
      const shared = sharedSecret(own, peerKey);
      return shared && { publicKey: rawPublicKey(own), shared };
    },
  },
  aesGcm: {
    seal({ key, nonce, aad, data }) {
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
      return concatBytes(cipher.update(data), cipher.final(), cipher.getAuthTag());
    },
    open({ key, nonce, aad, data }) {
      if (data.length < 16) return undefined;
      const split = data.length - 16;
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
        decipher.setAAD(aad).setAuthTag(data.subarray(split));
        return concatBytes(decipher.update(data.subarray(0, split)), decipher.final());
      } catch {
        return undefined;
      }
    },
  },
};

function sharedSecret(privateKey: KeyObject, peerKey: Uint8Array): Uint8Array | undefined {
  if (peerKey.length !== 32) return undefined;
  try {
    const secret = diffieHellman({ privateKey, publicKey: importPublic('x25519', peerKey) });
    return secret.every((byte) => byte === 0) ? undefined : secret;
  } catch {
    // OpenSSL refuses an all-zero result by throwing (01 E4).
    return undefined;
  }
}
