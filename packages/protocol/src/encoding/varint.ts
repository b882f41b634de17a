import { limits } from '../limits.ts';

/**
 * Unsigned varint (chapter 01, section 5.6): the length prefix of relay RPC and DHT messages.
 * Values go up to 2^63-1, so they are `bigint`.
 */

const max = (1n << 63n) - 1n;

/**
 * Encodes a value in its shortest form.
 *
 * @throws RangeError outside 0..2^63-1
 * @example
 * encodeVarint(300n); // Uint8Array [0xac, 0x02]
 */
export function encodeVarint(value: bigint): Uint8Array {
  if (value < 0n || value > max) throw new RangeError('varint out of range');
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/**
 * Decodes the varint at the start of `bytes`.
 * - a value and how many bytes it took;
 * - `incomplete` when the input ends inside the prefix;
 * - `invalid` for a longer form than needed, a tenth byte, or a value out of range (V2 to V4).
 *
 * @example
 * decodeVarint(new Uint8Array([0xac, 0x02])); // { value: 300n, length: 2 }
 * decodeVarint(new Uint8Array([0xac])); // 'incomplete'
 */
export function decodeVarint(
  bytes: Uint8Array,
): { value: bigint; length: number } | 'incomplete' | 'invalid' {
  let value = 0n;
  for (let index = 0; index < limits.varintBytes; index += 1) {
    const byte = bytes[index];
    if (byte === undefined) return 'incomplete';
    value |= BigInt(byte & 0x7f) << BigInt(index * 7);
    if ((byte & 0x80) === 0) {
      return byte === 0 && index > 0 ? 'invalid' : { value, length: index + 1 };
    }
  }
  return 'invalid';
}
