/** CommonMark 0.31.2 source as tokens: one parser for what is sent and what is shown (04 §8). */
import MarkdownIt from 'markdown-it';

/** A token of the parser: the members that CommonMark's tokens need to be read. */
export interface MarkdownToken {
  /** `paragraph_open`, `inline`, `text`, … */
  readonly type: string;
  /** Name of the HTML element, such as `h1`. */
  readonly tag: string;
  /** 1 opens, -1 closes, 0 stands alone. */
  readonly nesting: -1 | 0 | 1;
  /** Blocks around it. */
  readonly level: number;
  /** The inlines of an `inline`, the description of an `image`. */
  readonly children: readonly MarkdownToken[] | null;
  readonly content: string;
  /** The characters that made it, such as `*`. */
  readonly markup: string;
  /** The text after a code fence, as it was written. */
  readonly info: string;
  /** Whether a paragraph stands in a tight list. */
  readonly hidden: boolean;
  /** `href` of a link, `src` of an image, `title`, `start` of a list. */
  attrGet(name: string): string | number | null;
}

/** Levels of quotes, lists and emphasis that are parsed; text in deeper blocks has no tokens. */
export const maxMarkdownDepth = 20;

const commonmark = new MarkdownIt('commonmark', { maxNesting: maxMarkdownDepth });
// Targets are wanted as written: `parseHashReference` and `targetKind` judge them.
commonmark.normalizeLink = (uri) => uri;
commonmark.normalizeLinkText = (uri) => uri;
commonmark.validateLink = () => true;

/**
 * Parses CommonMark source. Blocks are in order; a block of type `inline` has children.
 *
 * @example
 * import { parseMarkdown } from '@posthouse/protocol/markdown';
 * parseMarkdown('# one').map(({ type }) => type); // ['heading_open', 'inline', 'heading_close']
 */
export function parseMarkdown(source: string): MarkdownToken[] {
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
