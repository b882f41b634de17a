/**
 * The uniform Ed25519 profile (chapter 01, section 5.2): public keys whose encoding is not
 * canonical, and the eight points of small order, are refused before any library sees them, so
 * that every implementation of {@link Primitives} agrees on validity.
 */

const p = (1n << 255n) - 19n;

/** The y coordinates of the points of small order; the sign bit is free. */
const smallOrder = new Set([
  0n,
  1n,
  p - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd83d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/** Whether a 32-byte encoding may be used as a public key at all. */
export function isAcceptableEd25519Key(publicKey: Uint8Array): boolean {
  if (publicKey.length !== 32) return false;
  let y = 0n;
  for (let index = 31; index >= 0; index -= 1) {
    const byte = publicKey[index] as number;
    y = (y << 8n) | BigInt(index === 31 ? byte & 0x7f : byte);
  }
  return y < p && !smallOrder.has(y);
}
