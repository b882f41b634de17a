import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalJson,
  decodeUtf8,
  JsonError,
  type JsonValue,
  parseJson,
} from '../../src/json/index.ts';
import { isJson, judge, looseJsonText, mutatedJsonText, protocolJson } from './arbitraries.ts';

const deep = (levels: number, inner = '') => '['.repeat(levels) + inner + ']'.repeat(levels);

function faultOf(text: string): JsonError {
  try {
    parseJson(text);
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
  throw new Error(`accepted ${text}`);
}

describe('01 §2.1: the strict parser', () => {
  test('accepts exactly what the rules accept, and reads it as JSON.parse does', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.oneof(looseJsonText, mutatedJsonText), (text) => {
        const { accepted: expected, value } = judge(text);
        if (expected) {
          accepted += 1;
          expectSame(parseJson(text), value);
        } else {
          expect(faultOf(text)).toBeInstanceOf(JsonError);
        }
      }),
      { numRuns: 20_000 },
    );
    expect(accepted).toBeGreaterThan(2_000);
    expect(accepted).toBeLessThan(18_000);
  });

  test('a text that is JSON is refused with fault rule, never syntax', () => {
    fc.assert(
      fc.property(looseJsonText, (text) => {
        fc.pre(isJson(text) && !judge(text).accepted);
        expect(faultOf(text).fault).toBe('rule');
      }),
      { numRuns: 2_000 },
    );
  });

  test('reads back whatever JSON.stringify writes of protocol JSON', () => {
    fc.assert(
      fc.property(protocolJson, fc.constantFrom(0, 2), (value, indent) => {
        expectSame(parseJson(JSON.stringify(value, null, indent)), value);
      }),
    );
  });

  test.each([
    ['J3', 'syntax', '{} x'],
    ['J3', 'syntax', '{}{}'],
    ['J3', 'syntax', '1 2'],
    ['J3', 'syntax', ''],
    ['J3', 'syntax', ' \n'],
    ['J3', 'syntax', '{}\u00a0'],
    ['J1', 'syntax', '\ufeff{}'],
    ['J2', 'rule', '"\\ud800"'],
    ['J2', 'rule', '"\\ud800x"'],
    ['J2', 'rule', '"\\ud800\\n"'],
    ['J2', 'rule', '"\\ud800\\ud800"'],
    ['J2', 'rule', '"\\udc00"'],
    ['J2', 'rule', '"\\udc00\\ud800"'],
    ['J2', 'rule', '"\ud800"'],
    ['J2', 'rule', '"\udc00"'],
    ['J2', 'rule', '"\ud83d\\ude00"'],
    ['J2', 'rule', '"\\ud83d\ude00"'],
    ['J2', 'rule', '{"\\ud800":1}'],
    ['J4', 'rule', '{"a":1,"a":1}'],
    ['J4', 'rule', '{"a":1,"b":2,"a":3}'],
    ['J4', 'rule', '{"a":1,"\\u0061":2}'],
    ['J4', 'rule', '{"😀":1,"\\ud83d\\ude00":2}'],
    ['J4', 'rule', '{"__proto__":1,"__proto__":2}'],
    ['J4', 'rule', '{"x":[{"constructor":1,"constructor":1}]}'],
    ['J5', 'rule', deep(18)],
    ['J5', 'rule', deep(17, '0')],
    ['J5', 'rule', `${'{"a":'.repeat(17)}0${'}'.repeat(17)}`],
    ['J6', 'rule', '-0'],
    ['J6', 'rule', '1.0'],
    ['J6', 'rule', '-0.0'],
    ['J6', 'rule', '1e2'],
    ['J6', 'rule', '1E-2'],
    ['J6', 'rule', '0e0'],
    ['J6', 'syntax', '01'],
    ['J6', 'syntax', '-01'],
    ['J6', 'syntax', '+1'],
    ['J6', 'syntax', '.5'],
    ['J6', 'syntax', '-'],
    ['J6', 'syntax', 'NaN'],
    ['J6', 'syntax', '0x10'],
    ['J7', 'rule', '9007199254740992'],
    ['J7', 'rule', '-9007199254740992'],
    ['J7', 'rule', '9007199254740993'],
    ['J7', 'rule', '9'.repeat(400)],
    ['RFC 8259', 'syntax', '"\u0000"'],
    ['RFC 8259', 'syntax', '"\u001f"'],
    ['RFC 8259', 'syntax', '"\n"'],
    ['RFC 8259', 'syntax', '"'],
    ['RFC 8259', 'syntax', '"\\'],
    ['RFC 8259', 'syntax', '"\\x41"'],
    ['RFC 8259', 'syntax', '"\\u00 1"'],
    ['RFC 8259', 'syntax', '"\\u123'],
    ['RFC 8259', 'syntax', '[1,]'],
    ['RFC 8259', 'syntax', '[,1]'],
    ['RFC 8259', 'syntax', '{"a":1,}'],
    ['RFC 8259', 'syntax', '{a:1}'],
    ['RFC 8259', 'syntax', '{"a" 1}'],
    ['RFC 8259', 'syntax', '[1'],
    ['RFC 8259', 'syntax', '{"a":1'],
    ['RFC 8259', 'syntax', 'True'],
    ['RFC 8259', 'syntax', 'nullx'],
    ['RFC 8259', 'syntax', '/**/1'],
    ['RFC 8259', 'syntax', '\u00a01'],
  ])('%s: refused with fault %s: %j', (_rule, fault, text) => {
    expect(faultOf(text).fault).toBe(fault);
  });

  test.each([
    ['0', 0],
    ['-1', -1],
    ['9007199254740991', 2 ** 53 - 1],
    ['-9007199254740991', -(2 ** 53 - 1)],
    [' \t\r\n"a"\n', 'a'],
    ['"\\ud83d\\ude00"', '😀'],
    ['"\\uD83D\\uDE00"', '😀'],
    ['"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"', '"\\/\b\f\n\r\t\0'],
    ['"\u007f\u2028\u2029\ufeff"', '\u007f\u2028\u2029\ufeff'],
    ['null', null],
  ])('accepts %j', (text, value) => {
    expect(parseJson(text)).toBe(value);
  });

  test('J5: depth 16 is the last that passes; scalars count as nodes', () => {
    expect(() => parseJson(deep(17))).not.toThrow();
    expect(() => parseJson(deep(16, '0'))).not.toThrow();
    expect(() => parseJson(`${'{"a":'.repeat(16)}0${'}'.repeat(16)}`)).not.toThrow();
  });

  test('J5: a text nested a million deep is refused without exhausting the stack', () => {
    expect(faultOf('['.repeat(1_000_000)).fault).toBe('rule');
    expect(faultOf('{"a":'.repeat(200_000)).fault).toBe('rule');
  });

  test('`__proto__` and other inherited names are ordinary members', () => {
    const value = parseJson('{"__proto__":{"a":1},"toString":2,"constructor":3}');
    expect(Object.keys(value as object)).toEqual(['__proto__', 'toString', 'constructor']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect((value as Record<string, unknown>).a).toBe(undefined);
    expect(canonicalJson(value as JsonValue)).toBe(
      '{"__proto__":{"a":1},"constructor":3,"toString":2}',
    );
  });

  test('an escaped name of one character is read right after a name that is a backslash', () => {
    expect(Object.keys(parseJson('{"\\\\":1}') as object)).toEqual(['\\']);
    expect(Object.keys(parseJson('{"\\u0061":1}') as object)).toEqual(['a']);
  });

  test('an error names the path and the offset, and repeats nothing of the text', () => {
    const error = faultOf('{"a":[1,{"secret":-0}]}');
    expect(error.path).toEqual(['a', 1, 'secret']);
    expect(error.offset).toBe(18);
    expect(error.message).toBe('negative zero at offset 18');
  });
});

describe('01 §2.1 J1: bytes to text', () => {
  test.each([
    ['a stray continuation byte', [0x22, 0x80, 0x22]],
    ['a lead byte without its continuation', [0x22, 0xc3, 0x22]],
    ['an overlong form', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a value above U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['a text that ends inside a character', [0x22, 0xf0, 0x9f, 0x98]],
  ])('%s is refused', (_name, bytes) => {
    expect(() => decodeUtf8(Uint8Array.from(bytes))).toThrow(JsonError);
  });

  test('any well-formed text comes back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(decodeUtf8(new TextEncoder().encode(text))).toBe(text);
      }),
    );
  });

  test('a byte order mark stays and is refused by the parser', () => {
    const text = decodeUtf8(Uint8Array.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]));
    expect(text).toBe('\ufeff{}');
    expect(faultOf(text).fault).toBe('syntax');
  });
});

/** Equal in everything: members, prototypes, `-0` too. */
function expectSame(actual: unknown, expected: unknown): void {
  expect(isDeepStrictEqual(actual, expected), JSON.stringify({ actual, expected })).toBe(true);
}
