/** Makes nodes of the parser's tokens. A token of a kind that is not expected shows as its source. */
import { type HashResolution, hashReferenceResolver, isHashReference } from '@posthouse/protocol';
import { decodeMarkdownText, type MarkdownToken } from '@posthouse/protocol/markdown';
import { safeLink } from './link-target.ts';
import type { BlockNode, InlineNode } from './nodes.ts';
import { visibleText } from './visible-text.ts';

/** What a tree may have at most, and the attachments that references of the body may find. */
export interface TreeOptions {
  readonly attachments: readonly unknown[];
  readonly nodes: number;
  readonly depth: number;
}

/** A tree that grows beyond a limit; the caller shows the source. */
class BeyondLimit extends Error {}

/** Builds the blocks of a body, or returns `undefined` if they are more or deeper than allowed. */
export function buildBlocks(
  tokens: readonly MarkdownToken[],
  options: TreeOptions,
): BlockNode[] | undefined {
  try {
    return new TreeBuilder(options).blocks(tokens);
  } catch (error) {
    if (error instanceof BeyondLimit) return undefined;
    throw error;
  }
}

/** Nodes are made after their children, so that a node is never changed once it is made. */
type Open<T> = {
  readonly token: MarkdownToken | undefined;
  readonly children: T[];
  /** Of a list: whether the parser hides the paragraphs of its items. */
  tight?: boolean;
};

class TreeBuilder {
  #nodes: number;
  readonly #depth: number;
  readonly #resolve: (uri: string) => HashResolution;

  constructor({ attachments, nodes, depth }: TreeOptions) {
    this.#nodes = nodes;
    this.#depth = depth;
    this.#resolve = hashReferenceResolver(attachments);
  }

  blocks(tokens: readonly MarkdownToken[]): BlockNode[] {
    const stack: Open<BlockNode | readonly BlockNode[]>[] = [{ token: undefined, children: [] }];
    let inline: InlineNode[] = [];
    for (const token of tokens) {
      const { type, nesting } = token;
      if (type === 'inline') {
        inline = this.#inline(token.children ?? [], stack.length);
      } else if (nesting === 1) {
        if (!isText(type)) this.#open(stack, token);
      } else if (nesting === -1 && isText(type)) {
        last(stack).children.push(this.#textBlock(token, inline));
        const list = stack.at(-2);
        if (token.hidden && list !== undefined) list.tight = true;
      } else if (nesting === -1) {
        const closed = stack.pop() as Open<BlockNode>;
        last(stack).children.push(this.#container(closed));
      } else {
        last(stack).children.push(this.#leaf(token));
      }
    }
    return last(stack).children as BlockNode[];
  }

  #open<T>(stack: Open<T>[], token: MarkdownToken): void {
    if (stack.length >= this.#depth) throw new BeyondLimit();
    stack.push({ token, children: [] });
  }

  #count<T>(node: T): T {
    this.#nodes -= 1;
    if (this.#nodes < 0) throw new BeyondLimit();
    return node;
  }

  #textBlock({ type, tag }: MarkdownToken, children: InlineNode[]): BlockNode {
    if (type === 'paragraph_close') return this.#count({ kind: 'paragraph', children });
    return this.#count({ kind: 'heading', level: Number(tag.slice(1)), children });
  }

  /** Makes a quote or a list; an item of a list is the array of its blocks. */
  #container({
    token,
    children,
    tight = false,
  }: Open<BlockNode>): BlockNode | readonly BlockNode[] {
    switch (token?.type) {
      case 'blockquote_open':
        return this.#count({ kind: 'quote', children });
      case 'bullet_list_open':
      case 'ordered_list_open': {
        const items = children as unknown as (readonly BlockNode[])[];
        const start =
          token.type === 'ordered_list_open' ? Number(token.attrGet('start') ?? 1) : NaN;
        return this.#count({
          kind: 'list',
          ...(Number.isSafeInteger(start) && { start }),
          tight,
          items,
        });
      }
      default:
        return this.#count(children);
    }
  }

  #leaf({ type, content, info }: MarkdownToken): BlockNode {
    const text = visibleText(content);
    if (type === 'hr') return this.#count({ kind: 'rule' });
    if (type === 'code_block') return this.#count({ kind: 'code_block', text });
    if (type !== 'fence') return this.#count({ kind: 'source_block', text });
    const [language = ''] = visibleText(decodeMarkdownText(info)).trim().split(/\s+/, 1);
    return this.#count({ kind: 'code_block', text, ...(language !== '' && { language }) });
  }

  #inline(tokens: readonly MarkdownToken[], depth: number): InlineNode[] {
    const stack: Open<InlineNode>[] = [{ token: undefined, children: [] }];
    for (const token of tokens) {
      if (token.nesting === 1) {
        if (stack.length + depth >= this.#depth) throw new BeyondLimit();
        stack.push({ token, children: [] });
      } else if (token.nesting === -1) {
        const { token: opened, children } = stack.pop() as Open<InlineNode>;
        last(stack).children.push(this.#span(opened as MarkdownToken, children));
      } else {
        const isInLink = stack.some(({ token: outer }) => outer?.type === 'link_open');
        this.#append(last(stack).children, this.#atom(token, isInLink));
      }
    }
    return last(stack).children;
  }

  /** Appends a node; text that follows text becomes one node. */
  #append(to: InlineNode[], node: InlineNode): void {
    const before = to.at(-1);
    if (node.kind === 'text' && before?.kind === 'text') {
      to[to.length - 1] = { kind: 'text', text: before.text + node.text };
    } else if (node.kind !== 'text' || node.text !== '') {
      to.push(this.#count(node));
    }
  }

  #span(token: MarkdownToken, children: InlineNode[]): InlineNode {
    if (token.type === 'em_open') return this.#count({ kind: 'emphasis', children });
    if (token.type === 'strong_open') return this.#count({ kind: 'strong', children });
    return this.#count(this.#target(String(token.attrGet('href') ?? ''), false, children));
  }

  #atom(token: MarkdownToken, isInLink: boolean): InlineNode {
    const text = visibleText(token.content);
    switch (token.type) {
      case 'softbreak':
        return { kind: 'text', text: '\n' };
      case 'hardbreak':
        return { kind: 'break' };
      case 'text':
        return { kind: 'text', text };
      case 'code_inline':
        return { kind: 'code', text };
      case 'image': {
        const description = { kind: 'text', text: descriptionOf(token) } as const;
        const target = this.#target(String(token.attrGet('src') ?? ''), true, [description]);
        // One place leads to one address: the link around it.
        return isInLink && target.kind !== 'attachment' ? description : target;
      }
      default:
        return { kind: 'source', text };
    }
  }

  #target(uri: string, image: boolean, children: readonly InlineNode[]): InlineNode {
    if (isHashReference(uri)) {
      const resolved = this.#resolve(uri);
      if (resolved.status === 'resolved') {
        return { kind: 'attachment', index: resolved.index, image, children };
      }
      const target = visibleText(uri);
      return { kind: 'blocked', reason: 'unresolved', target, image, children };
    }
    const link = safeLink(uri);
    if (link !== undefined) return { kind: 'link', ...link, image, children };
    return { kind: 'blocked', reason: 'unsafe', target: visibleText(uri), image, children };
  }
}

/** Paragraphs and headings hold inline nodes, all other blocks hold blocks. */
const isText = (type: string) => type.startsWith('paragraph_') || type.startsWith('heading_');

const last = <T>(values: readonly T[]): T => values.at(-1) as T;

/** The text of an image's description; links and images in it lead nowhere. */
function descriptionOf({ children }: MarkdownToken): string {
  return (children ?? [])
    .map((token) => {
      if (token.type === 'image') return descriptionOf(token);
      if (token.type === 'softbreak' || token.type === 'hardbreak') return '\n';
      return visibleText(token.content);
    })
    .join('');
}
