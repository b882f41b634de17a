/** Ed25519 checks as a batch for the worker thread. */
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { decodeBatch, encodeBatch, workBatch } from './batch.ts';

const keyBytes = 32;
const headBytes = keyBytes + 64;

/** Writes checks with keys of 32 and signatures of 64 bytes into one buffer. */
export function encodeChecks(checks: readonly SignatureCheck[]): ArrayBuffer {
  return encodeBatch(
    headBytes,
    checks.map(({ publicKey, signature, message }) => ({
      head: [publicKey, signature],
      text: message,
    })),
  );
}

/** Verifies each check of a buffer, and leaves the results in it. */
export function verifyChecks(
  buffer: ArrayBuffer,
  verify: (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean,
): void {
  workBatch(buffer, headBytes, (head, message) =>
    Number(verify(head.subarray(keyBytes), message, head.subarray(0, keyBytes))),
  );
}

/** Reads the results that {@link verifyChecks} left. */
export function decodeResults(buffer: ArrayBuffer): boolean[] {
  return decodeBatch(buffer, headBytes, (result) => result === 1);
}
