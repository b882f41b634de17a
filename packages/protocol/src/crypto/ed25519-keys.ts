/**
 * The uniform Ed25519 profile (chapter 01, section 5.2), applied before any library sees key and
 * signature, so that every implementation of {@link Primitives} agrees on validity: points whose
 * encoding is not canonical and the eight points of small order are refused, as public key and as
 * `R`, and so is an `S` at or above the group order. What remains is the equation without the
 * cofactor. The reason is in `docs/decisions/0006-ed25519-profile.md`.
 */

const p = (1n << 255n) - 19n;
const order = (1n << 252n) + 27742317777372353535851937790883648493n;

/** The y coordinates of the points of small order; the sign bit is free. */
const smallOrder = new Set([
  0n,
  1n,
  p - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/**
 * Returns whether a 32-byte encoding may be used as a public key at all.
 *
 * @example
 * isAcceptableEd25519Key(new Uint8Array(32)); // false: the point has small order
 */
export function isAcceptableEd25519Key(publicKey: Uint8Array): boolean {
  if (publicKey.length !== 32) return false;
  const y = littleEndianInteger(publicKey) & ((1n << 255n) - 1n);
  return y < p && !smallOrder.has(y);
}

/**
 * Returns whether a signature of `R` and `S` may verify at all: 64 bytes, both parts within the
 * profile.
 *
 * @example
 * isAcceptableEd25519Signature(new Uint8Array(63)); // false
 */
export function isAcceptableEd25519Signature(signature: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    isAcceptableEd25519Key(signature.subarray(0, 32)) &&
    littleEndianInteger(signature.subarray(32)) < order
  );
}

/** Returns the integer whose least significant byte comes first. */
export function littleEndianInteger(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    value = (value << 8n) | BigInt(bytes[index] as number);
  }
  return value;
}
