import { createCipheriv, createDecipheriv } from 'node:crypto';
import { PeerError } from '../errors.ts';

/** Bytes of the authentication tag of each encrypted message. */
export const tagBytes = 16;
/** Bytes of one Noise message, with keys, payload and tags (07 §B3). */
export const maxNoiseMessage = 65_535;
/** Messages under one key; the connection ends with them. */
const maxMessages = 2 ** 32;

const algorithm = 'chacha20-poly1305';
const options = { authTagLength: tagBytes } as const;
const noData: Uint8Array = new Uint8Array(0);

/** ChaCha20-Poly1305 with a counter as nonce: one direction of a connection, or of a handshake. */
export class CipherState {
  readonly #key: Buffer;
  /** Four zero bytes, then the counter, 64 bits little-endian; the upper half stays zero. */
  readonly #nonce = Buffer.alloc(12);
  #messages: number;

  /**
   * @param key 32 bytes; zeroed by {@link destroy}
   * @param messages the counter to begin with, for tests
   */
  constructor(key: Buffer, messages = 0) {
    this.#key = key;
    this.#messages = messages;
  }

  /** @throws PeerError `limit` after 2^32 messages */
  encrypt(plaintext: Uint8Array, associated = noData): { ciphertext: Buffer; tag: Buffer } {
    const cipher = createCipheriv(algorithm, this.#key, this.#nextNonce(), options);
    if (associated.length > 0) cipher.setAAD(associated, { plaintextLength: plaintext.length });
    const ciphertext = cipher.update(plaintext);
    cipher.final();
    return { ciphertext, tag: cipher.getAuthTag() };
  }

  /**
   * @param message ciphertext and tag
   * @throws PeerError `protocol` if the message is not authentic, `limit` after 2^32 messages
   */
  decrypt(message: Uint8Array, associated = noData): Buffer {
    const length = message.length - tagBytes;
    if (length < 0) throw new PeerError('protocol', 'noise: message shorter than its tag');
    const decipher = createDecipheriv(algorithm, this.#key, this.#nextNonce(), options);
    decipher.setAuthTag(message.subarray(length));
    if (associated.length > 0) decipher.setAAD(associated, { plaintextLength: length });
    const plaintext = decipher.update(message.subarray(0, length));
    try {
      decipher.final();
    } catch (cause) {
      plaintext.fill(0);
      throw new PeerError('protocol', 'noise: message is not authentic', { cause });
    }
    return plaintext;
  }

  /** Zeroes the key; the state cannot be used any more. */
  destroy(): void {
    this.#key.fill(0);
    this.#messages = maxMessages;
  }

  #nextNonce(): Buffer {
    if (this.#messages >= maxMessages) {
      throw new PeerError('limit', 'noise: no messages left under this key');
    }
    this.#nonce.writeUInt32LE(this.#messages, 4);
    this.#messages += 1;
    return this.#nonce;
  }
}
