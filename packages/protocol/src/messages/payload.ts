/** The ciphertext container of messages and group messages (01 §5.5, 04 §4). */
import type { Primitives, Random } from '../crypto/primitives.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import {
  Base64url,
  checkBase64url,
  checkPart,
  checkSchema,
  memberPath,
  type Static,
  Type,
} from '../schema.ts';

/** Ciphertext of one business object under one 32-byte key. */
export const EncryptedPayload = Type.Object({
  alg: Type.Literal('AES-256-GCM'),
  nonce: Base64url(12),
  /** base64url of ciphertext and 16-byte tag; length and encoding are checked outside the schema. */
  ciphertext: Type.String(),
});
export type EncryptedPayload = Static<typeof EncryptedPayload>;

/**
 * Checks a container's structure; a tag without ciphertext passes.
 * @throws ProtocolError `bad_request`
 */
export function checkEncryptedPayload(
  value: unknown,
  path = '',
): asserts value is EncryptedPayload {
  checkSchema(EncryptedPayload, value, path);
  checkPayloadRules(value, path);
}

/**
 * Checks what the schema of a container does not express.
 * @throws ProtocolError `bad_request`
 */
export function checkPayloadRules(payload: EncryptedPayload, path: string): void {
  checkPart(payload, path);
  checkBase64url(payload.ciphertext, 16, memberPath(path, 'ciphertext'));
}

/** Encrypts the bytes of a business object. The nonce is drawn from `random`. */
export function sealPayload(
  primitives: Primitives,
  input: {
    /** 32 bytes, for this object alone. */
    readonly key: Uint8Array;
    readonly aad: Uint8Array;
    readonly plaintext: Uint8Array;
    readonly random: Random;
  },
): EncryptedPayload {
  const { key, aad, plaintext, random } = input;
  const nonce = random(12);
  const sealed = primitives.aesGcm.seal({ key, nonce, aad, data: plaintext });
  return {
    alg: 'AES-256-GCM',
    nonce: encodeBase64url(nonce),
    ciphertext: encodeBase64url(sealed),
  };
}

/**
 * Decrypts a container; `undefined` if it does not authenticate.
 *
 * @example
 * const bytes = openPayload(primitives, envelope.payload, { key, aad: messageAad(network, envelope) });
 */
export function openPayload(
  primitives: Primitives,
  payload: EncryptedPayload,
  input: { readonly key: Uint8Array; readonly aad: Uint8Array },
): Uint8Array | undefined {
  const nonce = decodeBase64url(payload.nonce);
  const data = decodeBase64url(payload.ciphertext);
  if (nonce?.length !== 12 || data === undefined || data.length < 16) return undefined;
  return primitives.aesGcm.open({ key: input.key, nonce, aad: input.aad, data });
}
