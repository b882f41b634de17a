/**
 * What needs a Markdown parser: an entry of its own, so that programs which neither show nor check
 * bodies do not carry one.
 */
export {
  decodeMarkdownText,
  type MarkdownToken,
  maxMarkdownDepth,
  parseMarkdown,
} from './parser.ts';
export { postReferences } from './post-references.ts';
export { bodyTargets, checkBodyReferences, type MarkdownTarget } from './targets.ts';
