/** Nonces and tokens: how they are made, recognised and stored. */
import { createHash } from 'node:crypto';
import { encodeBase64url, limits } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';

/** Makes a nonce or a token: 32 random bytes, base64url (02 §9.2, §10.1). */
export function newSecret(random: Random): string {
  return encodeBase64url(random(32));
}

/** Whether a text has the form of a nonce or token: 1 to 256 visible ASCII characters. */
export function isSecretText(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= limits.tokenCharacters &&
    /^[\u0021-\u007e]+$/.test(text)
  );
}

/**
 * Hashes a secret for storage and look-up, so that a stolen database opens no session and the time
 * of a look-up reveals nothing about the secret.
 */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
