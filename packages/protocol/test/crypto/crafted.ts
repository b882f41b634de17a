import { ed25519 } from '@noble/curves/ed25519.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { hex } from '../../src/index.ts';
import { littleEndian } from './numbers.ts';

export const { Point } = ed25519;
/** The order of the group. */
export const order = Point.Fn.ORDER;
/** A generator of the eight points of small order. */
export const torsion = Point.fromHex(
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
);

export const mod = (value: bigint) => ((value % order) + order) % order;
/** The number whose least significant byte comes first. */
export const number = (bytes: Uint8Array) => BigInt(`0x${hex(bytes.toReversed()) || '0'}`);
export const multiply = (point: typeof Point.BASE, scalar: bigint) =>
  scalar === 0n ? Point.ZERO : point.multiplyUnsafe(scalar);

/** An Ed25519 key and signature with a chosen torsion part in each, made by hand (01 §5.2). */
export function craft(input: {
  readonly a: bigint;
  readonly r: bigint;
  readonly keyTorsion: bigint;
  readonly nonceTorsion: bigint;
  readonly message: Uint8Array;
}) {
  const { a, r, keyTorsion, nonceTorsion, message } = input;
  const publicKey = Point.BASE.multiply(a).add(multiply(torsion, keyTorsion)).toBytes();
  const nonce = multiply(Point.BASE, r).add(multiply(torsion, nonceTorsion)).toBytes();
  const k = mod(number(sha512(concatBytes(nonce, publicKey, message))));
  const signature = concatBytes(nonce, littleEndian(mod(r + k * a), 32));
  // S·B = R + k·A without the cofactor: the torsion parts must cancel out.
  const valid = (nonceTorsion + k * keyTorsion) % 8n === 0n;
  return { publicKey, signature, valid };
}
