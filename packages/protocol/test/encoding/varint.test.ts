import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeVarint, encodeVarint, fromHex, hex } from '../../src/index.ts';

const max = 2n ** 63n - 1n;
const value = fc.oneof(
  fc.bigInt({ min: 0n, max }),
  fc.nat(70_000).map(BigInt),
  fc.integer({ min: 0, max: 62 }).map((bits) => 2n ** BigInt(bits)),
  fc.integer({ min: 1, max: 63 }).map((bits) => 2n ** BigInt(bits) - 1n),
);

/** The rules V1 to V4 over a whole input, written plainly. */
function judge(bytes: readonly number[]): ReturnType<typeof decodeVarint> {
  const end = bytes.findIndex((byte) => byte < 0x80);
  if (end === -1) return bytes.length >= 9 ? 'invalid' : 'incomplete';
  if (end > 8 || (end > 0 && bytes[end] === 0)) return 'invalid';
  let sum = 0n;
  for (let index = end; index >= 0; index -= 1) {
    sum = sum * 128n + BigInt((bytes[index] as number) % 128);
  }
  return { value: sum, length: end + 1 };
}

describe('01 §5.6: unsigned varint', () => {
  test.each([
    [0n, '00'],
    [1n, '01'],
    [127n, '7f'],
    [128n, '8001'],
    [300n, 'ac02'],
    [1_048_576n, '808040'],
    [2n ** 53n - 1n, 'ffffffffffffff0f'],
    [max, 'ffffffffffffffff7f'],
  ])('the table of the chapter: %i is %s', (number, text) => {
    expect(hex(encodeVarint(number))).toBe(text);
    expect(decodeVarint(fromHex(text))).toEqual({ value: number, length: text.length / 2 });
  });

  test('a value comes back, whatever follows it, and no prefix of it is complete', () => {
    fc.assert(
      fc.property(value, fc.uint8Array({ maxLength: 3 }), (number, rest) => {
        const bytes = encodeVarint(number);
        const input = Uint8Array.from([...bytes, ...rest]);
        expect(decodeVarint(input)).toEqual({ value: number, length: bytes.length });
        for (let end = 0; end < bytes.length; end += 1) {
          expect(decodeVarint(bytes.subarray(0, end))).toBe('incomplete');
        }
      }),
    );
  });

  test('any bytes decode by the rules', () => {
    const byte = fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0x81, 0xff), fc.nat(255));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 11 }), (bytes) => {
        expect(decodeVarint(Uint8Array.from(bytes))).toEqual(judge(bytes));
      }),
      { numRuns: 5_000 },
    );
  });

  test.each([-1n, max + 1n, 2n ** 64n])('%i cannot be encoded', (number) => {
    expect(() => encodeVarint(number)).toThrow(RangeError);
  });
});
