/**
 * The uniform Ed25519 profile (chapter 01, section 5.2), applied before any library sees key and
 * signature, so that every implementation of {@link Primitives} agrees on validity: points whose
 * encoding is not canonical and the eight points of small order are refused, as public key and as
 * `R`, and so is an `S` at or above the group order. What remains is the equation without the
 * cofactor. The reason is in `docs/decisions/0006-ed25519-profile.md`.
 */
import { fromHex } from '../encoding/bytes.ts';

/** Returns the 32 bytes of a number in hexadecimal, least significant byte first. */
const bytesOf = (number: string) => fromHex(number).reverse();

/** The order of the group, `L`. */
const order = bytesOf('1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed');

/** The prime of the field, `2^255 - 19`. */
const prime = bytesOf(`7f${'ff'.repeat(30)}ed`);

/** The y coordinates of the points of small order; the sign bit is free. */
const smallOrder = [
  bytesOf('00'.repeat(32)),
  bytesOf(`${'00'.repeat(31)}01`),
  bytesOf(`7f${'ff'.repeat(30)}ec`),
  bytesOf('7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7'),
  bytesOf('05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826'),
];

/**
 * Returns whether a 32-byte encoding may be used as a public key at all.
 *
 * @example
 * isAcceptableEd25519Key(new Uint8Array(32)); // false: the point has small order
 */
export function isAcceptableEd25519Key(publicKey: Uint8Array): boolean {
  return publicKey.length === 32 && isAcceptablePoint(publicKey);
}

/**
 * Returns whether a signature of `R` and `S` may verify at all: 64 bytes, both parts within the
 * profile.
 *
 * @example
 * isAcceptableEd25519Signature(new Uint8Array(63)); // false
 */
export function isAcceptableEd25519Signature(signature: Uint8Array): boolean {
  return signature.length === 64 && isAcceptablePoint(signature) && isLess(signature, 32, order);
}

/** Whether the first 32 bytes encode a y coordinate canonically, and not that of a small order. */
function isAcceptablePoint(bytes: Uint8Array): boolean {
  return isLess(bytes, 0, prime, 0x7f) && !smallOrder.some((y) => isSameY(bytes, y));
}

/** Whether the 32 bytes from an offset, least significant first, are less than a number. */
function isLess(bytes: Uint8Array, offset: number, number: Uint8Array, topBits = 0xff): boolean {
  let mask = topBits;
  for (let index = 31; index >= 0; index -= 1) {
    const byte = (bytes[offset + index] as number) & mask;
    const other = number[index] as number;
    if (byte !== other) return byte < other;
    mask = 0xff;
  }
  return false;
}

/** Whether the first 32 bytes are a y coordinate, without their sign bit. */
function isSameY(bytes: Uint8Array, y: Uint8Array): boolean {
  for (let index = 0; index < 31; index += 1) if (bytes[index] !== y[index]) return false;
  return ((bytes[31] as number) & 0x7f) === y[31];
}
