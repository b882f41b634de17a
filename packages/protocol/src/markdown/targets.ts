/** Link and image targets of bodies (04 §8, §8.1). */
import { badRequest } from '../errors.ts';
import { bodyFormat, type MessageBody } from '../messages/body.ts';
import { hashReferenceResolver, isHashReference } from '../messages/hash-reference.ts';
import { type MarkdownToken, parseMarkdown } from './parser.ts';

/** One use of a target, as CommonMark understands the source. */
export interface MarkdownTarget {
  readonly kind: 'link' | 'image';
  /** Escapes and character references of Markdown decoded, percent-encoding untouched. */
  readonly uri: string;
}

/**
 * Returns the link and image targets of a body, in order of appearance. Reference-style ones are
 * resolved; code, escaped syntax, raw HTML and every format but CommonMark have none. Text below
 * twenty levels of quotes and lists has none either: the parser stops there, because the source is
 * untrusted.
 *
 * @example
 * import { bodyTargets } from '@posthouse/protocol/markdown';
 * bodyTargets({ content_type: 'text/markdown', text: '[a](ni:///sha-256;…)' });
 * // [{ kind: 'link', uri: 'ni:///sha-256;…' }]
 */
export function bodyTargets(body: MessageBody): MarkdownTarget[] {
  if (bodyFormat(body.content_type) !== 'commonmark') return [];
  return parseMarkdown(body.text).flatMap((block) => (block.children ?? []).flatMap(target));
}

/** The children of an image are its description; links in there lead nowhere. */
function target(token: MarkdownToken): MarkdownTarget[] {
  if (token.type !== 'link_open' && token.type !== 'image') return [];
  const kind = token.type === 'image' ? 'image' : 'link';
  return [{ kind, uri: String(token.attrGet(kind === 'image' ? 'src' : 'href') ?? '') }];
}

/**
 * Checks, before sending, that every reference of a body to an attachment finds exactly one. A
 * receiver never refuses a message for this.
 *
 * @param attachments the effective attachments of the same message or post
 * @throws ProtocolError `bad_request`
 * @example
 * import { checkBodyReferences } from '@posthouse/protocol/markdown';
 * checkBodyReferences(body, attachments);
 */
export function checkBodyReferences(body: MessageBody, attachments: readonly unknown[]): void {
  const references = bodyTargets(body).filter(({ uri }) => isHashReference(uri));
  if (references.length === 0) return;
  const resolve = hashReferenceResolver(attachments);
  for (const { uri } of references) {
    const { status } = resolve(uri);
    if (status !== 'resolved') throw badRequest('body.text', `attachment reference: ${status}`);
  }
}
