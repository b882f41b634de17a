/** The examples of the CommonMark specification, through the tree that clients show. */
import { tests } from 'commonmark-spec';
import { describe, expect, test } from 'vitest';
import { readBody } from '../../src/content/index.ts';
import type { BlockNode, InlineNode } from '../../src/content/nodes.ts';

/** What the tree does not have: titles of links, and the difference between two spellings of a URL. */
function comparable(html: string): string {
  return html
    .replace(/ title="[^"]*"/g, '')
    .replace(/ (href|src)="([^"]*)"/g, (_, name: string, uri: string) => {
      return ` ${name}="${comparableUri(uri)}"`;
    })
    .replace(/\n+/g, '\n')
    .trim();
}

function comparableUri(uri: string): string {
  const plain = uri.replaceAll('&amp;', '&').replaceAll('&quot;', '"');
  const written =
    /^(https?|mailto):/i.test(plain) && URL.canParse(plain) ? new URL(plain).href : plain;
  return decodeLoosely(written).replace(/[&"<>]/g, (character) => escapeHtml(character));
}

/** Percent-encoding of both sides is undone as far as it is UTF-8. */
function decodeLoosely(text: string): string {
  return text.replace(/(?:%[0-9A-F]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded.toUpperCase();
    }
  });
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function blocksHtml(nodes: readonly BlockNode[], tight = false): string {
  return nodes.map((node) => blockHtml(node, tight)).join('\n');
}

function blockHtml(node: BlockNode, tight: boolean): string {
  switch (node.kind) {
    case 'paragraph':
      return tight ? inlinesHtml(node.children) : `<p>${inlinesHtml(node.children)}</p>`;
    case 'heading':
      return `<h${node.level}>${inlinesHtml(node.children)}</h${node.level}>`;
    case 'quote':
      return `<blockquote>\n${blocksHtml(node.children)}\n</blockquote>`;
    case 'list': {
      const start = node.start === undefined || node.start === 1 ? '' : ` start="${node.start}"`;
      const name = node.start === undefined ? 'ul' : 'ol';
      const items = node.items.map((item) => itemHtml(item, node.tight));
      return `<${name}${start}>\n${items.join('\n')}\n</${name}>`;
    }
    case 'code_block': {
      const language =
        node.language === undefined ? '' : ` class="language-${escapeHtml(node.language)}"`;
      return `<pre><code${language}>${escapeHtml(node.text)}</code></pre>`;
    }
    case 'rule':
      return '<hr />';
    case 'source_block':
      return node.text;
    case 'plain':
      throw new Error('no example is plain text');
  }
}

function itemHtml(item: readonly BlockNode[], tight: boolean): string {
  if (item.length === 0) return '<li></li>';
  const open = tight && item[0]?.kind === 'paragraph' ? '' : '\n';
  const close = tight && item.at(-1)?.kind === 'paragraph' ? '' : '\n';
  return `<li>${open}${blocksHtml(item, tight)}${close}</li>`;
}

function inlinesHtml(nodes: readonly InlineNode[]): string {
  return nodes.map(inlineHtml).join('');
}

function inlineHtml(node: InlineNode): string {
  switch (node.kind) {
    case 'text':
      return escapeHtml(node.text);
    case 'code':
      return `<code>${escapeHtml(node.text)}</code>`;
    case 'emphasis':
      return `<em>${inlinesHtml(node.children)}</em>`;
    case 'strong':
      return `<strong>${inlinesHtml(node.children)}</strong>`;
    case 'break':
      return '<br />\n';
    case 'source':
      return node.text;
    case 'attachment':
      throw new Error('no example has attachments');
    default: {
      const uri = escapeHtml(node.kind === 'link' ? node.url : node.target);
      const text = inlinesHtml(node.children);
      return node.image ? `<img src="${uri}" alt="${text}" />` : `<a href="${uri}">${text}</a>`;
    }
  }
}

/** An image inside a link is its description: one place leads to one address. */
const imageInLink = /<a [^>]*>(?:(?!<\/a>).)*<img /s;

describe('04 §8: bodies are CommonMark 0.31.2', () => {
  test('the specification has 652 examples', () => {
    expect(tests.length).toBe(652);
  });

  const sections = Map.groupBy(tests, ({ section }) => section);
  test.each([...sections.keys()])('%s', (section) => {
    for (const { number, markdown, html } of sections.get(section) ?? []) {
      const text = markdown.replaceAll('→', '\t');
      if (imageInLink.test(html)) continue;
      const { format, blocks } = readBody({ content_type: 'text/markdown', text });
      expect.soft(format, `example ${number}`).toBe('markdown');
      const expected = comparable(html.replaceAll('→', '\t'));
      expect.soft(comparable(blocksHtml(blocks)), `example ${number}`).toBe(expected);
    }
  });
});
