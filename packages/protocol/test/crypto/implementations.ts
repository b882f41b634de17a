import { noblePrimitives, type Primitives } from '../../src/crypto/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';

/** The two implementations of the primitives; they must never disagree. */
export const implementations: readonly (readonly [string, Primitives])[] = [
  ['noble', noblePrimitives],
  ['node', nodePrimitives],
];

/** Little-endian bytes of a number. */
export function littleEndian(value: bigint, length: number): Uint8Array {
  return bigEndian(value, length).reverse();
}

/** Big-endian bytes of a number. */
export function bigEndian(value: bigint, length: number): Uint8Array {
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex'));
}
