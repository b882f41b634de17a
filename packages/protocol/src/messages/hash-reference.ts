/** References from a body to its own attachments by digest (04 §8.1, RFC 6920 §3). */
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { ProtocolError } from '../errors.ts';
import { bodyFormat, type MessageBody } from './body.ts';
import { type ContentReference, checkAttachments } from './content-reference.ts';

const hashPrefix = 'sha256:';

/**
 * Returns the URI that refers to an attachment, for a link or image target.
 *
 * @param hash `sha256:` and 43 characters
 * @example
 * const markdown = attachments.map(({ hash }) => `![photo](${hashReferenceUri(hash)})`);
 */
export function hashReferenceUri(hash: string): string {
  return `ni:///sha-256;${hash.slice(hashPrefix.length)}`;
}

/**
 * Returns whether a target has the scheme of a hash reference; it may still be malformed.
 *
 * @example
 * isHashReference('ni:///sha-256;…'); // true
 */
export function isHashReference(uri: string): boolean {
  return /^ni:/i.test(uri);
}

/**
 * Returns whether a body can refer to attachments at all. `false` is certain and needs no parser: a
 * target begins with `ni:`, of which Markdown can escape the colon and encode each character.
 *
 * @example
 * mayReferToAttachments({ content_type: 'text/markdown', text: 'Nice.' }); // false
 */
export function mayReferToAttachments({ content_type, text }: MessageBody): boolean {
  return bodyFormat(content_type) === 'commonmark' && /ni\\?:|&/i.test(text);
}

/**
 * Returns the digest a reference names, or `undefined` if the reference is not in its one form:
 * empty authority, `sha-256`, a full digest, nothing else. Algorithm and digest are percent-decoded
 * once, after the URI was split.
 */
export function parseHashReference(uri: string): Uint8Array | undefined {
  const [, algorithm, digest] = /^ni:\/\/\/([^;/?#]*);([^;/?#]*)$/i.exec(uri) ?? [];
  if (algorithm === undefined || digest === undefined) return undefined;
  if (percentDecode(algorithm) !== 'sha-256') return undefined;
  const bytes = decodeBase64url(percentDecode(digest) ?? ' ');
  return bytes?.length === 32 ? bytes : undefined;
}

/** The result of resolving a reference among attachments. */
export type HashResolution =
  | { readonly status: 'resolved'; readonly index: number }
  | { readonly status: 'unresolved' | 'invalid_reference' | 'invalid_attachments' };

/**
 * Makes a function that finds the attachments which references name, among the effective
 * attachments of the same message or post only. The message is valid whatever the result; without
 * `resolved` the client shows the body as it is and requests the content from no other source.
 *
 * The attachments are indexed once: body and attachments are untrusted, and each can have thousands
 * of elements.
 *
 * @example
 * const resolve = hashReferenceResolver(attachments);
 * resolve('ni:///sha-256;…').status; // 'invalid_reference'
 */
export function hashReferenceResolver(
  attachments: readonly unknown[],
): (uri: string) => HashResolution {
  if (!areAttachments(attachments)) return () => ({ status: 'invalid_attachments' });
  // A digest has one canonical text, so texts compare as its bytes do.
  const indexes = new Map(attachments.map(({ hash }, index) => [hash, index]));
  return (uri) => {
    const digest = parseHashReference(uri);
    if (digest === undefined) return { status: 'invalid_reference' };
    const index = indexes.get(`${hashPrefix}${encodeBase64url(digest)}`);
    return index === undefined ? { status: 'unresolved' } : { status: 'resolved', index };
  };
}

/**
 * Resolves a single reference, as {@link hashReferenceResolver} does.
 *
 * @example
 * const { status } = resolveHashReference(text, attachments);
 */
export function resolveHashReference(uri: string, attachments: readonly unknown[]): HashResolution {
  return hashReferenceResolver(attachments)(uri);
}

function areAttachments(values: readonly unknown[]): values is ContentReference[] {
  try {
    checkAttachments(values);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

function percentDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
