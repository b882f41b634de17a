/** The parser as it is published: without the libraries of `markdown-it` (decision 0031). */
import * as whole from '@posthouse/protocol/markdown';
import { tests } from 'commonmark-spec';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { bundleParser } from '../../../../scripts/small-markdown.ts';
import { seed } from '../../../relay/test/support/chance.ts';
import { hostileBodies } from './hostile-bodies.ts';

type Parser = Pick<typeof whole, 'parseMarkdown' | 'decodeMarkdownText'>;
let published: Parser;

beforeAll(async () => {
  const text = await bundleParser();
  published = await import(`data:text/javascript,${encodeURIComponent(text)}`);
});

function expectSame(text: string): void {
  const [same, library] = [published, whole].map((parser) =>
    JSON.stringify([parser.parseMarkdown(text), parser.decodeMarkdownText(text)]),
  );
  expect(same === library, text.slice(0, 200)).toBe(true);
}

test('04 §8: the published parser imports nothing', async () => {
  expect(await bundleParser()).not.toMatch(/^import\b|\bimport\(|\brequire\(/m);
});

test('04 §8: it reads the examples of CommonMark as the library does', () => {
  for (const { markdown } of tests) expectSame(markdown.replaceAll('→', '\t'));
});

test('04 §8: it reads hostile bodies as the library does', () => {
  for (const text of Object.values(hostileBodies).flat()) expectSame(text.slice(0, 4096));
});

const parts = fc.oneof(
  fc.constantFrom(...['*', '**', '_', '`', '``', '[', ']', '(', ')', '![', '<', '>', '\\', '&']),
  fc.constantFrom(
    ...['\n', '\n\n', ' ', '    ', '\t', '# ', '- ', '1. ', '> ', '---', '```', '==='],
  ),
  fc.constantFrom(...['&amp;', '&copy', '&#0;', '&#x41;', '&#128;', '&#0000000128;', '&ngE;']),
  fc.constantFrom(
    ...['<a@b.c>', '<https://a.b/%20ö>', '[a]: /u "t"\n', '[a]', '<i>', '<!--', '-->'],
  ),
  fc.constantFrom(
    ...['a', 'https://xn--a.b', 'é', '€', '。', '\u00a0', '\u{1f600}', '\ud800', '\0'],
  ),
);

test('04 §8: it reads random texts as the library does', () => {
  const texts = fc.array(parts, { maxLength: 30 }).map((some) => some.join(''));
  fc.assert(fc.property(texts, expectSame), { seed, numRuns: 2_000 });
});

test('04 §8: it takes the same characters for punctuation', () => {
  const span = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => from + at);
  const codes = [...span(0x20, 0x3400), ...span(0xa000, 0xac00), ...span(0xf900, 0x11400)];
  codes.push(...span(0x1d000, 0x1fc00));
  for (let at = 0; at < codes.length; at += 500) {
    const characters = codes.slice(at, at + 500).map((code) => String.fromCodePoint(code));
    expectSame(characters.map((one) => `a*${one}b*`).join('\n\n'));
  }
});
