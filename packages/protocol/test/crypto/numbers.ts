/** Numbers as bytes. */
import { fromHex } from '../../src/index.ts';

/** Little-endian bytes of a number. */
export function littleEndian(value: bigint, length: number): Uint8Array {
  return bigEndian(value, length).reverse();
}

/** Big-endian bytes of a number. */
export function bigEndian(value: bigint, length: number): Uint8Array {
  return fromHex(value.toString(16).padStart(length * 2, '0'));
}
