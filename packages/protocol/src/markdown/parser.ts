/** CommonMark 0.31.2 source as tokens: one parser for what is sent and what is shown (04 §8). */
import MarkdownIt, { type Token } from 'markdown-it';

export type { Token as MarkdownToken } from 'markdown-it';

/** Levels of quotes, lists and emphasis that are parsed; text in deeper blocks has no tokens. */
export const maxMarkdownDepth = 20;

const commonmark = new MarkdownIt('commonmark', { maxNesting: maxMarkdownDepth });
// Targets are wanted as written: `parseHashReference` and `targetKind` judge them.
commonmark.normalizeLink = (uri) => uri;
commonmark.validateLink = () => true;

/**
 * Parses CommonMark source. Blocks are in order; a block of type `inline` has children.
 *
 * @example
 * import { parseMarkdown } from '@posthouse/protocol/markdown';
 * parseMarkdown('# one').map(({ type }) => type); // ['heading_open', 'inline', 'heading_close']
 */
export function parseMarkdown(source: string): Token[] {
  return commonmark.parse(source, {});
}

/**
 * Decodes escapes and character references of Markdown, as in the text after a code fence, which
 * tokens have as it was written.
 *
 * @example
 * import { decodeMarkdownText } from '@posthouse/protocol/markdown';
 * decodeMarkdownText('c\\+\\+'); // 'c++'
 */
export function decodeMarkdownText(text: string): string {
  return commonmark.utils.unescapeAll(text);
}
