import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import {
  bytesField,
  encodeBytesField,
  encodeVarintField,
  type ProtobufValue,
  readProtobuf,
  varintField,
} from '../../src/encoding/protobuf.ts';
import { fromHex, hex } from '../../src/index.ts';
import { refusal, survivesRandomBytes } from '../federation/decoders.ts';

const read = (bytes: Uint8Array) => [...readProtobuf(bytes, 'message')];
const shown = (bytes: Uint8Array) =>
  read(bytes).map(([number, value]) => [
    number,
    value instanceof Uint8Array ? hex(value) : (value ?? 'skipped'),
  ]);

describe('07 §B6: the protobuf wire format', () => {
  test.each([
    ['0800', [[1, 0]], 'an explicit zero'],
    ['089601', [[1, 150]], 'a varint'],
    ['08808000', [[1, 0]], 'a varint in a longer form'],
    ['08ffffffffffffffffff01', [[1, 2 ** 64]], 'the greatest varint, rounded'],
    ['12020304', [[2, '0304']], 'bytes'],
    ['1200', [[2, '']], 'no bytes'],
    ['8a400107', [[1025, '07']], 'a field number of two bytes'],
    ['f8ffffff0f01', [[2 ** 29 - 1, 1]], 'the greatest field number'],
    ['0d01020304', [[1, 'skipped']], 'fixed 32 bits'],
    ['090102030405060708', [[1, 'skipped']], 'fixed 64 bits'],
    [
      '0b0801130d01020304140c1001',
      [...Array.from({ length: 5 }, () => [0, 'skipped']), [1, 'skipped'], [2, 1]],
      'a group in a group, each of its fields as one without a number',
    ],
  ] as [string, unknown[], string][])('%s is read as %j: %s', (text, fields) => {
    expect(shown(fromHex(text))).toEqual(fields);
  });

  test.each([
    ['80', 'a tag without an end'],
    ['0000', 'field number 0'],
    ['808080801001', 'a field number above 2^29-1'],
    ['0e', 'wire type 6'],
    ['0f', 'wire type 7'],
    ['0c', 'the end of a group that is not open'],
    ['0b', 'a group without an end'],
    ['0b14', 'the end of another group'],
    ['0b'.repeat(17) + '0c'.repeat(17), 'groups nested too deep'],
    ['08ffffffffffffffffff02', 'a varint of more than 64 bits'],
    ['08ffffffffffffffffffff01', 'a varint of 11 bytes'],
    ['120304', 'bytes that end early'],
    ['12ffffffffffffffffff01', 'a length above every input'],
    ['0d010203', 'fixed 32 bits that end early'],
  ])('%s is refused: %s', (text) => {
    expect(refusal(() => read(fromHex(text)))).toMatch(/^message: malformed protobuf/);
  });

  test('groups up to 16 deep are skipped', () => {
    const fields = shown(fromHex('0b'.repeat(16) + '0c'.repeat(16)));
    expect(fields.filter(([number]) => number !== 0)).toEqual([[1, 'skipped']]);
    expect(fields).toHaveLength(32);
  });

  test('encoded fields come back, and no prefix of a field is complete', () => {
    const number = fc.integer({ min: 1, max: 2 ** 29 - 1 });
    fc.assert(
      fc.property(number, fc.maxSafeInteger().map(Math.abs), fc.uint8Array(), (id, value, data) => {
        const first = encodeVarintField(id, value);
        const second = encodeBytesField(id, data);
        expect(read(concatBytes(first, second))).toEqual([
          [id, value],
          [id, data],
        ]);
        for (const field of [first, second]) {
          for (let end = 1; end < field.length; end += 1) {
            expect(refusal(() => read(field.subarray(0, end)))).toMatch(/expected more bytes$/);
          }
        }
      }),
    );
  });

  test('a field of another wire type is refused where bytes or a number are expected', () => {
    const values: [ProtobufValue, unknown, unknown][] = [
      [7, undefined, 7],
      [new Uint8Array(2), new Uint8Array(2), undefined],
      [undefined, undefined, undefined],
    ];
    for (const [value, asBytes, asNumber] of values) {
      if (asBytes === undefined) expect(refusal(() => bytesField(value, 'x'))).toMatch(/^x: /);
      else expect(bytesField(value, 'x')).toEqual(asBytes);
      if (asNumber === undefined) expect(refusal(() => varintField(value, 'x'))).toMatch(/^x: /);
      else expect(varintField(value, 'x')).toBe(asNumber);
    }
  });

  test('random bytes are read or refused', () => {
    survivesRandomBytes(read, [fromHex('0b0801130d01020304140c1001'), fromHex('8a40020708')]);
  });
});
