import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { base64urlLength, base64urlPattern } from '../../src/encoding/base64url.ts';
import { decodeBase64url, encodeBase64url } from '../../src/index.ts';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The judge: `Buffer` is lax, so what it decodes must encode to the very same text. */
function isCanonical(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

/** Texts that are nearly canonical: one character of canonical text replaced, added or lost. */
const nearText = fc
  .tuple(
    fc.uint8Array({ maxLength: 70 }),
    fc.nat(),
    fc.integer({ min: 0, max: 1 }),
    fc.oneof(
      fc.constantFrom(...alphabet, ''),
      fc.constantFrom('=', '+', '/', ' ', '\n', '\0', '%', 'ä', '１', '\u0141', '😀', 'AA'),
    ),
  )
  .map(([bytes, place, length, piece]) => {
    const text = Buffer.from(bytes).toString('base64url');
    // Mostly at the end, where the pad bits are.
    const at = place % 3 === 0 ? place % (text.length + 1) : Math.max(0, text.length - length);
    return text.slice(0, at) + piece + text.slice(at + length);
  });

describe('01 §2.5: base64url', () => {
  test('B5: every byte string has one text and comes back from it', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const text = encodeBase64url(bytes);
        expect(text).toBe(Buffer.from(bytes).toString('base64url'));
        expect(decodeBase64url(text)).toEqual(bytes);
        expect(base64urlLength(text)).toBe(bytes.length);
      }),
    );
  });

  test('B1 to B5: accepted is exactly what encodes to itself again', () => {
    fc.assert(
      fc.property(fc.oneof(nearText, fc.string({ unit: 'binary', maxLength: 8 })), (text) => {
        const expected = isCanonical(text) ? Buffer.from(text, 'base64url').length : undefined;
        expect(decodeBase64url(text)?.length).toBe(expected);
        expect(base64urlLength(text)).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  test('B3: of all last characters of one and two bytes, only those with zero pad bits pass', () => {
    const lastOf = (front: string) =>
      [...alphabet].filter((last) => decodeBase64url(front + last) !== undefined).join('');
    expect(lastOf('A')).toBe('AQgw');
    expect(lastOf('AA')).toBe('AEIMQUYcgkosw048');
    expect(lastOf('AAA')).toBe(alphabet);
    expect(lastOf('')).toBe('');
  });

  test.each(['AA==', 'AA=', '+w', '/w', 'AA\n', ' AA', 'A A', 'ＡＡ', 'AA\0', 'AB', 'A', 'AAAAA'])(
    'B4: %j is rejected',
    (text) => {
      expect(decodeBase64url(text)).toBe(undefined);
      expect(base64urlLength(text)).toBe(undefined);
    },
  );

  test('the empty text is zero bytes', () => {
    expect(decodeBase64url('')).toEqual(new Uint8Array());
    expect(base64urlLength('')).toBe(0);
  });
});

describe('01 §2.5 B6, B7: the pattern of a fixed length', () => {
  test.each([1, 2, 3, 12, 16, 32, 33, 60, 64])(
    '%i bytes: says all that decoding says',
    (length) => {
      const pattern = new RegExp(base64urlPattern(length));
      fc.assert(
        fc.property(fc.oneof(nearText, nearFixed(length)), (text) => {
          expect(pattern.test(text)).toBe(decodeBase64url(text)?.length === length);
        }),
        { numRuns: 500 },
      );
    },
  );

  test('the prefix must match exactly and is not part of the encoding', () => {
    const pattern = new RegExp(base64urlPattern(16, 'dev_'));
    const id = Buffer.alloc(16, 255).toString('base64url');
    expect(pattern.test(`dev_${id}`)).toBe(true);
    for (const text of [id, `Dev_${id}`, `dev${id}`, ` dev_${id}`, `dev_${id}\n`, `dev_${id}A`]) {
      expect(pattern.test(text)).toBe(false);
    }
  });
});

function nearFixed(length: number) {
  return fc
    .tuple(fc.uint8Array({ minLength: length, maxLength: length }), fc.constantFrom(...alphabet))
    .map(([bytes, last]) => Buffer.from(bytes).toString('base64url').slice(0, -1) + last);
}
