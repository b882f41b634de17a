/** Reads bodies of strangers into a tree of known kinds (04 §8, §8.1, 06 §10.3). */
import { bodyFormat, type MessageBody } from '@posthouse/protocol';
import { type MarkdownToken, maxMarkdownDepth, parseMarkdown } from '@posthouse/protocol/markdown';
import type { BlockNode, BodyTree } from './nodes.ts';
import { buildBlocks } from './tree-builder.ts';
import { visibleText } from './visible-text.ts';

/** Limits of {@link readBody}; a body beyond one of them is shown as its source. */
export const bodyLimits = {
  /** Characters of Markdown source. */
  sourceLength: 65_536,
  /** Characters that can begin markup: what a parser compares with each other. */
  marks: 8192,
  /** Nodes of the tree, at all levels. */
  nodes: 16_384,
  /** Levels of nodes, blocks and inline nodes together. */
  depth: 32,
} as const;

/**
 * Reads a body into a tree of plain data, of the kinds of {@link BodyTree} only. The tree holds no
 * HTML; its links have schemes that the chapter allows; references lead to the given attachments
 * only; an image is a link or an attachment until a person or a local policy loads it. Nothing is
 * requested, and no body makes an error: what is beyond the limits, or of an unknown format, is shown
 * as its source. Takes some milliseconds for the worst body within the limits.
 *
 * @param attachments the effective attachments of the same message or post (04 §8.1)
 * @example
 * import { readBody } from '@posthouse/client/content';
 * const body = { content_type: 'text/markdown', text: 'See [this](https://example.com).' };
 * const { blocks } = readBody(body);
 * // [{ kind: 'paragraph', children: [{ kind: 'text', text: 'See ' }, { kind: 'link',
 * //   url: 'https://example.com/', host: 'example.com', image: false, children: [...] }, ...] }]
 */
export function readBody(body: MessageBody, attachments: readonly unknown[] = []): BodyTree {
  const { content_type, text } = body;
  const format = bodyFormat(content_type);
  if (format !== 'commonmark') return { format, blocks: [plain(text)] };
  const blocks = isWithinLimits(text) ? readMarkdown(text, attachments) : undefined;
  return blocks === undefined
    ? { format: 'too_large', blocks: [plain(text)] }
    : { format: 'markdown', blocks };
}

function plain(text: string): BlockNode {
  return { kind: 'plain', text: visibleText(text) };
}

function isWithinLimits(text: string): boolean {
  if (text.length > bodyLimits.sourceLength) return false;
  return (text.match(/[!&*+<>[\\\]_`~-]/g)?.length ?? 0) <= bodyLimits.marks;
}

/** Returns `undefined` for a tree beyond the limits. */
function readMarkdown(text: string, attachments: readonly unknown[]): BlockNode[] | undefined {
  const tokens = parseMarkdown(text);
  if (tokens.some(isDeepest)) return undefined;
  return buildBlocks(tokens, { attachments, nodes: bodyLimits.nodes, depth: bodyLimits.depth });
}

/** Whether a token is a quote or an item so deep that the parser leaves out what is in it. */
function isDeepest({ type, level }: MarkdownToken): boolean {
  return level >= maxMarkdownDepth - 1 && (type === 'blockquote_open' || type === 'list_item_open');
}
