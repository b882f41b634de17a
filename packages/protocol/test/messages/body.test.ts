import { describe, expect, test } from 'vitest';
import { bodyFormat, checkMessageBody } from '../../src/index.ts';
import { codeOf } from '../contacts/accounts.ts';

const check = (contentType: unknown, text: unknown = 'hi') =>
  codeOf(() => checkMessageBody({ content_type: contentType, text }, 'body'));

describe('04 §8: MessageBody', () => {
  test('unknown formats and unknown members are accepted', () => {
    expect(check('text/x-example; a=b')).toBeUndefined();
    const body = { content_type: 'text/plain', text: 'hi', x: 1 };
    expect(codeOf(() => checkMessageBody(body))).toBeUndefined();
  });

  test.each([
    'text/plain; charset=utf-8',
    'text/plain; Charset=UTF-8',
    'text/plain; charset="Utf-8"',
  ])('%s passes', (contentType) => {
    expect(check(contentType)).toBeUndefined();
  });

  test.each([
    'text/plain; charset=utf8',
    'text/plain; charset=us-ascii',
    'text/plain; charset=""',
    'text/plain; charset=utf-8; charset=latin1',
    'text',
    '',
    null,
    1,
  ])('%j is refused', (contentType) => {
    expect(check(contentType)).toBe('bad_request');
  });

  test('01 §2.4: text of white space alone is refused, one other character is enough', () => {
    const listed = [
      [0x9, 0xd],
      [0x20, 0x20],
      [0x85, 0x85],
      [0xa0, 0xa0],
      [0x1680, 0x1680],
      [0x2000, 0x200a],
      [0x2028, 0x2029],
      [0x202f, 0x202f],
      [0x205f, 0x205f],
      [0x3000, 0x3000],
    ].flatMap(([first = 0, last = 0]) =>
      Array.from({ length: last - first + 1 }, (_, index) => first + index),
    );
    expect(listed.length).toBe(25);
    const all = String.fromCodePoint(...listed);
    for (const point of listed) {
      expect(check('text/plain', String.fromCodePoint(point))).toBe('bad_request');
    }
    expect(check('text/plain', all)).toBe('bad_request');
    expect(check('text/plain', `${all}.${all}`)).toBeUndefined();
    // What other lists call white space: zero width space, byte order mark, Mongolian separator.
    for (const text of ['\u200b', '\ufeff', '\u180e']) {
      expect(check('text/plain', text)).toBeUndefined();
    }
  });

  test.each(['', null, 1, ['hi'], undefined])('text %j is refused', (text) => {
    const body = text === undefined ? { content_type: 'a/b' } : { content_type: 'a/b', text };
    expect(codeOf(() => checkMessageBody(body))).toBe('bad_request');
  });

  test.each([null, 'hi', [], undefined])('%j is no body', (body) => {
    expect(codeOf(() => checkMessageBody(body))).toBe('bad_request');
  });
});

describe('04 §8: formats', () => {
  test.each([
    ['text/plain', 'plain'],
    ['TEXT/PLAIN; format=flowed', 'plain'],
    ['text/markdown', 'commonmark'],
    ['text/markdown; charset=utf-8', 'commonmark'],
    ['Text/Markdown; VARIANT="commonMARK"', 'commonmark'],
    ['text/markdown; variant=GFM', 'unknown'],
    ['text/markdown; variant=""', 'unknown'],
    ['text/markdown; variant=CommonMark; variant=GFM', 'unknown'],
    ['text/markdownx', 'unknown'],
    ['text/html', 'unknown'],
    ['nonsense', 'unknown'],
  ])('%s is %s', (contentType, format) => {
    expect(bodyFormat(contentType)).toBe(format);
  });
});
