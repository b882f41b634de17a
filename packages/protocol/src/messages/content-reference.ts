/** References to content outside the message: avatars and attachments (01 §11.1, 04 §9). */
import type { Random } from '../crypto/primitives.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { badRequest } from '../errors.ts';
import { type Network, sha256Text } from '../identity/network.ts';
import { canonicalBytes } from '../json/canonical.ts';
import {
  Base64url,
  Counter,
  checkPart,
  checkSchema,
  memberPath,
  Sha256,
  type Static,
  Type,
} from '../schema.ts';
import { checkMediaType, parseMediaType } from './media-type.ts';

/** Key and nonce of encrypted content, each fresh for this content alone (04 §9.2). */
export const ContentEncryption = Type.Object({
  alg: Type.Literal('AES-256-GCM'),
  key: Base64url(32),
  nonce: Base64url(12),
});
export type ContentEncryption = Static<typeof ContentEncryption>;

/** The address of content and its digest. `hash` and `size` are those of the plaintext. */
export const ContentReference = Type.Object({
  uri: Type.String(),
  hash: Sha256,
  content_type: Type.String(),
  size: Counter,
  encryption: Type.Optional(ContentEncryption),
});
export type ContentReference = Static<typeof ContentReference>;

/**
 * Checks a reference: shape, absolute HTTPS address, media type (04 §9.1).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkContentReference(value);
 * console.log(value.uri);
 */
export function checkContentReference(
  value: unknown,
  path = '',
): asserts value is ContentReference {
  checkSchema(ContentReference, value, path);
  checkPart(value, path);
  if (value.encryption !== undefined) checkPart(value.encryption, memberPath(path, 'encryption'));
  if (!isHttpsUri(value.uri))
    throw badRequest(memberPath(path, 'uri'), 'expected an absolute https URI');
  checkMediaType(value.content_type, memberPath(path, 'content_type'));
}

/**
 * Checks a reference whose content must be an image, such as an avatar (01 §11).
 * @throws ProtocolError `bad_request`
 */
export function checkImageReference(value: unknown, path = ''): asserts value is ContentReference {
  checkContentReference(value, path);
  if (parseMediaType(value.content_type)?.type !== 'image') {
    throw badRequest(memberPath(path, 'content_type'), 'expected an image media type');
  }
}

/**
 * Checks an `attachments` array: every reference, and no `hash` twice, whatever else differs
 * (04 §10).
 *
 * @throws ProtocolError `bad_request`
 */
export function checkAttachments(
  value: readonly unknown[],
  path = 'attachments',
): asserts value is ContentReference[] {
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    checkContentReference(item, memberPath(path, index));
    if (seen.has(item.hash)) throw badRequest(`${memberPath(path, index)}.hash`, 'repeated hash');
    seen.add(item.hash);
  }
}

const uriCharacter = "[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}";
const httpsUri = new RegExp(
  `^https://(?:${uriCharacter}|[[\\]])+(?:/(?:${uriCharacter}|/)*)?` +
    `(?:\\?(?:${uriCharacter}|[/?])*)?(?:#(?:${uriCharacter}|[/?])*)?$`,
  'i',
);

/**
 * Returns whether a text is an absolute HTTPS URI of RFC 3986: its characters and parts only, and a
 * host. `URL` alone would repair what is not a URI.
 */
export function isHttpsUri(text: string): boolean {
  return httpsUri.test(text) && URL.canParse(text);
}

/**
 * Returns the associated data of encrypted content (04 §9.2). The only input that is not bound to a
 * network: the same content can be referred to from any network.
 */
export function contentAad(
  network: Network,
  reference: Pick<ContentReference, 'hash' | 'content_type' | 'size'>,
): Uint8Array {
  return canonicalBytes({
    $type: network.type('content.reference.aad'),
    alg: 'AES-256-GCM',
    hash: reference.hash,
    content_type: reference.content_type,
    size: reference.size,
  });
}

/**
 * Encrypts content for uploading: gives the bytes to serve and the reference, still without the
 * address they will be served at.
 *
 * @example
 * const contentType = 'image/png';
 * const { body, reference } = sealContent(network, { plaintext, contentType, random });
 * const attachment = { uri: `https://files.example.com/${body.length}`, ...reference };
 */
export function sealContent(
  network: Network,
  content: {
    readonly plaintext: Uint8Array;
    readonly contentType: string;
    readonly random: Random;
  },
): { body: Uint8Array; reference: Omit<ContentReference, 'uri'> } {
  const { plaintext, contentType, random } = content;
  checkMediaType(contentType, 'content_type');
  const key = random(32);
  const nonce = random(12);
  const described = {
    hash: sha256Text(network.primitives, plaintext),
    content_type: contentType,
    size: plaintext.length,
  };
  const aad = contentAad(network, described);
  return {
    body: network.primitives.aesGcm.seal({ key, nonce, aad, data: plaintext }),
    reference: {
      ...described,
      encryption: { alg: 'AES-256-GCM', key: encodeBase64url(key), nonce: encodeBase64url(nonce) },
    },
  };
}

/**
 * Opens downloaded content: decrypts if the reference has a key, then checks length and digest of
 * the plaintext. Content that fails a check must not be used, not even in part (04 §9.2, §10).
 *
 * @param body the bytes served at the reference's address
 * @returns the plaintext, or `undefined` for content that is not what the reference promises
 * @example
 * const reference = attachments[0];
 * const content = reference && openContent(network, reference, bytes);
 */
export function openContent(
  network: Network,
  reference: ContentReference,
  body: Uint8Array,
): Uint8Array | undefined {
  const plaintext = decryptContent(network, reference, body);
  if (plaintext?.length !== reference.size) return undefined;
  return sha256Text(network.primitives, plaintext) === reference.hash ? plaintext : undefined;
}

function decryptContent(
  network: Network,
  reference: ContentReference,
  body: Uint8Array,
): Uint8Array | undefined {
  if (reference.encryption === undefined) return body;
  const key = decodeBase64url(reference.encryption.key);
  const nonce = decodeBase64url(reference.encryption.nonce);
  if (key?.length !== 32 || nonce?.length !== 12) return undefined;
  return network.primitives.aesGcm.open({
    key,
    nonce,
    aad: contentAad(network, reference),
    data: body,
  });
}
