import { decodeHTMLStrict as decodeByLibrary } from 'entities';
import { expect, test } from 'vitest';
import { decodeHTMLStrict } from '../../src/markdown/character-references.ts';
import { namedReferences } from '../../src/markdown/named-references.ts';

test('04 §8: each of the 2,125 named references stands for what it does in HTML', () => {
  const names = [...namedReferences().keys()];
  expect(names.length).toBe(2125);
  const texts = names.map((name) => `&${name};`);
  expect(texts.map(decodeHTMLStrict)).toEqual(texts.map(decodeByLibrary));
  expect(texts.filter((text) => decodeHTMLStrict(text) === text)).toEqual([]);
});

test('04 §8: numbered references stand for what they do in HTML', () => {
  const codes = [...Array(0x3000).keys(), 0xd7ff, 0xd800, 0xdfff, 0xe000, 0x10ffff, 0x110000, 2e20];
  for (const code of codes) {
    const written = BigInt(code);
    for (const text of [`&#${written};`, `&#x${written.toString(16)};`, `&#X000${code};`]) {
      expect(decodeHTMLStrict(text)).toBe(decodeByLibrary(text));
    }
  }
});

test.each([
  '&;',
  '&#;',
  '&#x;',
  '&amp',
  '&ampx;',
  '&AMp;',
  '&toString;',
  '&__proto__;',
  '& amp;',
  'a',
])('04 §8: %s is no reference', (text) => {
  expect(decodeHTMLStrict(text)).toBe(text);
  expect(decodeByLibrary(text)).toBe(text);
});

test('04 §8: references next to each other are each decoded, once', () => {
  expect(decodeHTMLStrict('&amp;lt;&lt;&&gt;')).toBe('&lt;<&>');
});
