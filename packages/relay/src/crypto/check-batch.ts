/**
 * Ed25519 checks as the bytes that go to the worker, and back with the results. The buffer begins
 * with 32-bit words: the number of checks, then the length of each message. The keys and signatures
 * follow, 96 bytes for each check, then the messages. A result replaces the length of its message.
 */
import type { SignatureCheck } from '@posthouse/protocol/crypto';

const keyBytes = 32;
const signedBytes = keyBytes + 64;

/** Writes checks with keys of 32 and signatures of 64 bytes into one buffer. */
export function encodeBatch(checks: readonly SignatureCheck[]): ArrayBuffer {
  const count = checks.length;
  let total = 4 * (count + 1) + signedBytes * count;
  for (const { message } of checks) total += message.length;
  const buffer = new ArrayBuffer(total);
  const words = new Uint32Array(buffer, 0, count + 1);
  const bytes = new Uint8Array(buffer);
  words[0] = count;
  let signed = words.byteLength;
  let text = signed + signedBytes * count;
  for (const [index, { publicKey, message, signature }] of checks.entries()) {
    words[index + 1] = message.length;
    bytes.set(publicKey, signed);
    bytes.set(signature, signed + keyBytes);
    bytes.set(message, text);
    signed += signedBytes;
    text += message.length;
  }
  return buffer;
}

/** Verifies each check of a buffer and writes the results into it. */
export function verifyBatch(
  buffer: ArrayBuffer,
  verify: (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean,
): void {
  const count = new Uint32Array(buffer, 0, 1)[0] as number;
  const words = new Uint32Array(buffer, 4, count);
  let signed = 4 * (count + 1);
  let text = signed + signedBytes * count;
  for (const [index, length] of words.entries()) {
    const publicKey = new Uint8Array(buffer, signed, keyBytes);
    const signature = new Uint8Array(buffer, signed + keyBytes, signedBytes - keyBytes);
    words[index] = Number(verify(signature, new Uint8Array(buffer, text, length), publicKey));
    signed += signedBytes;
    text += length;
  }
}

/** Reads the results that {@link verifyBatch} wrote. */
export function decodeResults(buffer: ArrayBuffer): boolean[] {
  const words = new Uint32Array(buffer, 0, (new Uint32Array(buffer, 0, 1)[0] as number) + 1);
  return Array.from(words.subarray(1), (word) => word === 1);
}
