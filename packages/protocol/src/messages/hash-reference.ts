/** References from a body to its own attachments by digest (04 §8.1, RFC 6920 §3). */
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import { ProtocolError } from '../errors.ts';
import { type ContentReference, checkAttachments } from './content-reference.ts';

const hashPrefix = 'sha256:';

/**
 * The URI that refers to an attachment, for a link or image target.
 *
 * @param hash `sha256:` and 43 characters
 * @example
 * `![photo](${hashReferenceUri(attachment.hash)})`; // '![photo](ni:///sha-256;Xj04…)'
 */
export function hashReferenceUri(hash: string): string {
  return `ni:///sha-256;${hash.slice(hashPrefix.length)}`;
}

/** Whether a target claims to be such a reference; it may still be malformed. */
export function isHashReference(uri: string): boolean {
  return /^ni:/i.test(uri);
}

/**
 * The digest a reference names, or `undefined` where the reference is not in its one form: empty
 * authority, `sha-256`, a full digest, nothing else. Algorithm and digest are percent-decoded once,
 * after the URI was split.
 */
export function parseHashReference(uri: string): Uint8Array | undefined {
  const [, algorithm, digest] = /^ni:\/\/\/([^;/?#]*);([^;/?#]*)$/i.exec(uri) ?? [];
  if (algorithm === undefined || digest === undefined) return undefined;
  if (percentDecode(algorithm) !== 'sha-256') return undefined;
  const bytes = decodeBase64url(percentDecode(digest) ?? ' ');
  return bytes?.length === 32 ? bytes : undefined;
}

/** Where a reference leads within the attachments that may serve it. */
export type HashResolution =
  | { readonly status: 'resolved'; readonly index: number }
  | { readonly status: 'unresolved' | 'invalid_reference' | 'invalid_attachments' };

/**
 * Finds the attachments that references name, among the effective attachments of the very same
 * message or post and nowhere else. Whatever the outcome, the message stands; without `resolved`
 * the client shows the body as it is and asks nobody else for the content.
 *
 * The attachments are looked at once: body and attachments are a stranger's, and each alone can
 * have thousands of elements.
 *
 * @example
 * const resolve = hashReferenceResolver(message.attachments ?? []);
 * bodyTargets(message.body).map(({ uri }) => resolve(uri)); // [{ status: 'resolved', index: 0 }]
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

/** {@link hashReferenceResolver} for a single reference. */
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
