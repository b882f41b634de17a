/** X25519 key pairs of the Noise handshake, and hashing with SHA-256. */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hash,
  type KeyObject,
} from 'node:crypto';
import { PeerError } from '../errors.ts';

/** DER of an X25519 private key in PKCS #8 and of a public key in SPKI, up to the 32 bytes. */
const privateHead = Buffer.from('302e020100300506032b656e04220420', 'hex');
const publicHead = Buffer.from('302a300506032b656e032100', 'hex');

/** Bytes of a public key and of a shared secret. */
export const dhBytes = 32;

export interface NoiseKeyPair {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** Generates a key pair. */
export function generateNoiseKeys(): NoiseKeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey, publicKey: rawPublicKey(publicKey) };
}

/** Makes the key pair of a private key of 32 bytes. */
export function noiseKeysOf(secret: Uint8Array): NoiseKeyPair {
  const key = Buffer.concat([privateHead, secret]);
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  key.fill(0);
  return { privateKey, publicKey: rawPublicKey(createPublicKey(privateKey)) };
}

function rawPublicKey(key: KeyObject): Uint8Array {
  return key.export({ format: 'der', type: 'spki' }).subarray(publicHead.length);
}

/**
 * Computes the shared secret with a peer's public key.
 *
 * @throws PeerError `protocol` for a key of small order: its secret would be zero for everyone
 */
export function sharedSecret({ privateKey }: NoiseKeyPair, peer: Uint8Array): Uint8Array {
  const key = Buffer.concat([publicHead, peer]);
  let secret: Buffer;
  try {
    const publicKey = createPublicKey({ key, format: 'der', type: 'spki' });
    secret = diffieHellman({ privateKey, publicKey });
  } catch (cause) {
    // OpenSSL refuses the all-zero secret itself.
    throw new PeerError('protocol', 'noise: invalid X25519 public key', { cause });
  }
  if (secret.every((byte) => byte === 0)) {
    throw new PeerError('protocol', 'noise: X25519 public key of small order');
  }
  return secret;
}

/** SHA-256 of parts one after another. */
export function sha256(...parts: readonly Uint8Array[]): Buffer {
  return hash('sha256', Buffer.concat(parts), 'buffer');
}

const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]) =>
  createHmac('sha256', key).update(Buffer.concat(parts)).digest();

/** HKDF of Noise with two outputs of 32 bytes. */
export function hkdf(chainingKey: Uint8Array, input: Uint8Array): [Buffer, Buffer] {
  const temporary = hmac(chainingKey, input);
  const first = hmac(temporary, Uint8Array.of(1));
  const second = hmac(temporary, first, Uint8Array.of(2));
  temporary.fill(0);
  return [first, second];
}
