/** Nonces and tokens: how they are made, recognised and stored. */
import { createHash } from 'node:crypto';
import { encodeBase64url, limits } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';

/** A nonce or a token: 32 fresh bytes, encoded completely (02 §9.2, §10.1). */
export function newSecret(random: Random): string {
  return encodeBase64url(random(32));
}

/** Whether a text can be a nonce or token at all: 1 to 256 visible ASCII characters. */
export function isSecretText(text: unknown): text is string {
  return (
    typeof text === 'string' &&
    text.length <= limits.tokenCharacters &&
    /^[\u0021-\u007e]+$/.test(text)
  );
}

/**
 * What is stored and searched instead of a secret: a stolen database opens no session, and the
 * time of a lookup says nothing about the secret.
 */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
