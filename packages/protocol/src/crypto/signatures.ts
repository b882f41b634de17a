import { ProtocolError } from '../errors.ts';
import type { Primitives, SignatureCheck } from './primitives.ts';

/**
 * Verifies signatures one after another on the calling thread.
 *
 * @throws ProtocolError `invalid_signature` at the first that does not verify
 */
export function verifySignatures(
  primitives: Primitives,
  checks: readonly SignatureCheck[],
  what: string,
): void {
  for (const { scheme, publicKey, message, signature } of checks) {
    if (!primitives[scheme].verify(publicKey, message, signature)) {
      throw new ProtocolError('invalid_signature', `${what}: signature does not verify`);
    }
  }
}
