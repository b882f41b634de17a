import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes, equalBytes } from '../../src/encoding/bytes.ts';
import { isOnlyWhitespace } from '../../src/encoding/whitespace.ts';
import { fromHex, hex, utf8, utf8Length } from '../../src/index.ts';

describe('bytes and text', () => {
  test('utf8Length is the length of the bytes, of short texts and long ones', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom(1, 200), (text, times) => {
        const repeated = text.repeat(times);
        expect(utf8Length(repeated)).toBe(Buffer.byteLength(repeated));
        expect(utf8(text)).toEqual(new Uint8Array(Buffer.from(text)));
      }),
    );
    expect(utf8Length('\u007f\u0080\u07ff\u0800\uffff\u{10000}\u{10ffff}')).toBe(
      1 + 2 + 2 + 3 + 3 + 4 + 4,
    );
  });

  test('hex comes back, in either case', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = hex(bytes);
        expect(text).toBe(Buffer.from(bytes).toString('hex'));
        expect(fromHex(text)).toEqual(bytes);
        expect(fromHex(text.toUpperCase())).toEqual(bytes);
      }),
    );
  });

  test.each(['0', 'abc', '0g', '0x00', ' 00', '00\n', '０0'])('%j is not hex', (text) => {
    expect(() => fromHex(text)).toThrow(TypeError);
  });

  test('parts are put together in order', () => {
    expect(concatBytes()).toEqual(new Uint8Array());
    expect(concatBytes(fromHex('0102'), fromHex(''), fromHex('03'))).toEqual(fromHex('010203'));
  });

  test('equality compares every byte and the length', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        expect(equalBytes(a, b)).toBe(hex(a) === hex(b));
        expect(equalBytes(a, a.slice())).toBe(true);
      }),
    );
    expect(equalBytes(fromHex('0001'), fromHex('0000'))).toBe(false);
    expect(equalBytes(fromHex('00'), fromHex('0000'))).toBe(false);
  });
});

describe('01 §2.4: white space of user text', () => {
  const list = [
    ...[0x9, 0xa, 0xb, 0xc, 0xd, 0x20, 0x85, 0xa0, 0x1680],
    ...[0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a],
    ...[0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
  ];

  test('exactly the 25 code points of the list count', () => {
    const found = [];
    for (let code = 0; code <= 0x10ffff; code += 1) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      if (isOnlyWhitespace(String.fromCodePoint(code))) found.push(code);
    }
    expect(found).toEqual(list);
    expect(list.length).toBe(25);
  });

  test('T1: one code point outside the list is enough; the empty text is no white space', () => {
    const all = String.fromCodePoint(...list);
    expect(isOnlyWhitespace(all)).toBe(true);
    expect(isOnlyWhitespace(`${all}\ufeff`)).toBe(false);
    expect(isOnlyWhitespace(`a${all}`)).toBe(false);
    expect(isOnlyWhitespace(`${all}\n`)).toBe(true);
    expect(isOnlyWhitespace('')).toBe(false);
  });
});
