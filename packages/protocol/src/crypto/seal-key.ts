import { concatBytes } from '../encoding/bytes.ts';
import type { Primitives } from './primitives.ts';

/**
 * A key to seal to an X25519 public key (04 §6.2, 05 §3.5), as a value: everything needed, nothing
 * else, so that another thread can do it.
 */
export interface KeyToSeal {
  /** X25519 public key that it is sealed to, 32 bytes. */
  readonly receiver: Uint8Array;
  /** Private key made for this box, 32 bytes. */
  readonly ephemeral: Uint8Array;
  /** Made for this box, 12 bytes. */
  readonly nonce: Uint8Array;
  /** Of the key derivation, 32 bytes. */
  readonly salt: Uint8Array;
  /** KDF info and associated data at once. */
  readonly info: Uint8Array;
  /** The 32 bytes to seal. */
  readonly key: Uint8Array;
}

export interface SealedKey {
  /** Ephemeral public key, 32 bytes. */
  readonly enc: Uint8Array;
  /** Nonce, ciphertext and tag: 60 bytes. */
  readonly sealed: Uint8Array;
}

/**
 * Seals a key (04 §6.2, 05 §3.5).
 *
 * @param input.info the context bytes, or what makes them for an `enc`
 * @returns `undefined` for a receiver whose shared secret is all zero (01 E2)
 * @example
 * const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));
 * const own = { ephemeral: random(32), nonce: random(12), salt: new Uint8Array(32) };
 * const input = { ...own, receiver: publicKeyBytes, info: plaintext, key: random(32) };
 * console.log(sealKey(primitives, input)?.sealed.length); // 60
 */
export function sealKey(
  { x25519, hkdfSha256, aesGcm }: Pick<Primitives, 'x25519' | 'hkdfSha256' | 'aesGcm'>,
  input: Omit<KeyToSeal, 'info'> & {
    readonly info: Uint8Array | ((enc: Uint8Array) => Uint8Array);
  },
): SealedKey | undefined {
  const { receiver, ephemeral, nonce, salt } = input;
  const agreement = x25519.agree(ephemeral, receiver);
  if (agreement === undefined) return undefined;
  const { publicKey: enc, shared: secret } = agreement;
  const info = typeof input.info === 'function' ? input.info(enc) : input.info;
  const key = hkdfSha256({ secret, salt, info, length: 32 });
  const sealed = aesGcm.seal({ key, nonce, aad: info, data: input.key });
  return { enc, sealed: concatBytes(nonce, sealed) };
}
