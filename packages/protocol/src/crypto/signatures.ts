import { decodeBase64url } from '../encoding/base64url.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import type { Primitives, SignatureCheck } from './primitives.ts';

/**
 * Decodes key and signature of an object into a signature to verify.
 *
 * @throws ProtocolError `bad_request` when key or signature is not canonical base64url; an object
 *   that passed its schema never does
 * @example
 * const parts = { scheme: 'ed25519', publicKey, message: plaintext, signature: text } as const;
 * verifySignatures(primitives, [signatureCheck(parts)], 'note');
 */
export function signatureCheck(parts: {
  readonly scheme: SignatureCheck['scheme'];
  readonly publicKey: string;
  readonly message: Uint8Array;
  readonly signature: string;
}): SignatureCheck {
  const publicKey = decodeBase64url(parts.publicKey);
  const signature = decodeBase64url(parts.signature);
  if (publicKey === undefined || signature === undefined) {
    throw badRequest('', 'key or signature is not canonical base64url');
  }
  return { scheme: parts.scheme, publicKey, message: parts.message, signature };
}

/**
 * Verifies signatures one after another on the calling thread.
 *
 * @throws ProtocolError `invalid_signature` at the first that does not verify
 * @example
 * verifySignatures(primitives, deviceStateSignatures(network, state), 'device state');
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
