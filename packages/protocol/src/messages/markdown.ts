/** Link and image targets of bodies (04 §8, §8.1). */
import { fromMarkdown } from 'mdast-util-from-markdown';
import { badRequest } from '../errors.ts';
import { bodyFormat, type MessageBody } from './body.ts';
import { isHashReference, resolveHashReference } from './hash-reference.ts';

/** One use of a target, as CommonMark understands the source. */
export interface MarkdownTarget {
  readonly kind: 'link' | 'image';
  /** Escapes and character references of Markdown decoded, percent-encoding untouched. */
  readonly uri: string;
}

type Root = ReturnType<typeof fromMarkdown>;
type Node = Root | Root['children'][number];

/**
 * The link and image targets of a body, in order of appearance. Reference-style ones are resolved;
 * code, escaped syntax, raw HTML and every format but CommonMark have none.
 *
 * @example
 * bodyTargets({ content_type: 'text/markdown', text: '[a](ni:///sha-256;…)' });
 * // [{ kind: 'link', uri: 'ni:///sha-256;…' }]
 */
export function bodyTargets(body: MessageBody): MarkdownTarget[] {
  if (bodyFormat(body.content_type) !== 'commonmark') return [];
  const nodes = [...walk(fromMarkdown(body.text))];
  const definitions = new Map<string, string>();
  for (const node of nodes) {
    // Of definitions with one label the first counts.
    if (node.type === 'definition' && !definitions.has(node.identifier)) {
      definitions.set(node.identifier, node.url);
    }
  }
  const targets: MarkdownTarget[] = [];
  for (const node of nodes) {
    if (node.type === 'link' || node.type === 'image') {
      targets.push({ kind: node.type, uri: node.url });
    } else if (node.type === 'linkReference' || node.type === 'imageReference') {
      const uri = definitions.get(node.identifier);
      const kind = node.type === 'linkReference' ? 'link' : 'image';
      if (uri !== undefined) targets.push({ kind, uri });
    }
  }
  return targets;
}

/**
 * Checks, before sending, that every reference of a body to an attachment finds exactly one.
 * A receiver never refuses a message for this.
 *
 * @param attachments the effective attachments of the same message or post
 * @throws ProtocolError `bad_request`
 */
export function checkBodyReferences(body: MessageBody, attachments: readonly unknown[]): void {
  for (const { uri } of bodyTargets(body)) {
    if (!isHashReference(uri)) continue;
    const { status } = resolveHashReference(uri, attachments);
    if (status !== 'resolved') throw badRequest('body.text', `attachment reference: ${status}`);
  }
}

/**
 * What a client may do with a target: open a web address, look among the message's own
 * attachments, or nothing. Scripts and every scheme not named here are blocked, and `ni:` is never
 * handed to the system.
 */
export function targetKind(uri: string): 'web' | 'attachment' | 'blocked' {
  if (isHashReference(uri)) return 'attachment';
  return /^(?:https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i.test(uri) ? 'web' : 'blocked';
}

/** Every node in document order; nesting is as deep as the author wants, so nothing recurses. */
function* walk(root: Root): Generator<Node> {
  const stack: Node[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    yield node;
    if ('children' in node) {
      for (const child of node.children.toReversed()) stack.push(child);
    }
  }
}
