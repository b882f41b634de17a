import { describe, expect, test } from 'vitest';
import { parseMediaType } from '../../src/index.ts';
import { checkMediaType } from '../../src/messages/media-type.ts';
import { codeOf } from '../contacts/accounts.ts';

describe('RFC 9110 §8.3.1: media types', () => {
  test('type, subtype and parameter names in lowercase, values as written', () => {
    expect(parseMediaType('Text/Markdown; Variant=CommonMark;charset="UTF-8"')).toEqual({
      type: 'text',
      subtype: 'markdown',
      essence: 'text/markdown',
      parameters: [
        { name: 'variant', value: 'CommonMark' },
        { name: 'charset', value: 'UTF-8' },
      ],
    });
  });

  test.each([
    'text/plain',
    'application/vnd.example+json',
    "!#$%&'*+-.^_`|~09aZ/x",
    'text/plain;charset=utf-8',
    'text/plain ; charset=utf-8',
    'text/plain\t;\tcharset=utf-8',
    'text/plain;',
    'text/plain; ',
    'text/plain;;a=b;',
    'text/plain; a=""',
    'text/plain; a="b;c=d"',
    'text/plain; a="é😀"',
    'text/plain; a="\\"\\\\"',
    'text/plain; a=b; A=c',
  ])('%j is one', (text) => {
    expect(parseMediaType(text)).toBeDefined();
    expect(codeOf(() => checkMediaType(text, 'content_type'))).toBeUndefined();
  });

  test.each([
    '',
    'text',
    'text/',
    '/plain',
    'text /plain',
    'text/ plain',
    'text/plain/x',
    ' text/plain',
    'text/plain ',
    'text/plain\n',
    'text/pläin',
    'text/plain, text/html',
    'text/plain charset=utf-8',
    'text/plain; charset',
    'text/plain; charset=',
    'text/plain; =utf-8',
    'text/plain; charset =utf-8',
    'text/plain; charset= utf-8',
    'text/plain; a="b',
    'text/plain; a=b"',
    'text/plain; a="b"c',
    'text/plain; a="\u0000"',
    'text/plain; a="\u007f"',
    'text/plain; a="\\\u0001"',
    'text/plain; a="b\\"',
    'text/plain\u00a0; a=b',
    '*/*; q=é',
  ])('%j is none', (text) => {
    expect(parseMediaType(text)).toBeUndefined();
    expect(codeOf(() => checkMediaType(text, 'content_type'))).toBe('bad_request');
  });

  test('quoted values lose their quotes and escapes, once', () => {
    const value = (text: string) => parseMediaType(`a/b; v=${text}`)?.parameters[0]?.value;
    expect(value('"a b"')).toBe('a b');
    expect(value('"\\a\\"\\\\\\é"')).toBe('a"\\é');
    expect(value('"\\\\n"')).toBe('\\n');
    expect(value('""')).toBe('');
    expect(value("'a'")).toBe("'a'");
  });

  test('a long run of parameters or quotes parses in linear time', () => {
    expect(parseMediaType(`a/b${'; '.repeat(50_000)}`)).toBeDefined();
    expect(parseMediaType(`a/b;x="${'\\"'.repeat(50_000)}`)).toBeUndefined();
    expect(parseMediaType(`a/b${' '.repeat(50_000)}x`)).toBeUndefined();
  });
});
