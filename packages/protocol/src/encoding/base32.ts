/** Unpadded lower-case base32 (RFC 4648 §6), as CIDs are written. */

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Decodes canonical text; anything else, nonzero pad bits too, gives `undefined`. A library would bring
 * every page its encoder and other bases too.
 */
export function decodeBase32(text: string): Uint8Array | undefined {
  const bytes: number[] = [];
  let group = 0;
  let bits = 0;
  for (const letter of text) {
    const value = alphabet.indexOf(letter);
    if (value < 0) return undefined;
    group = ((group << 5) | value) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((group >> bits) & 255);
  }
  const isWhole = bits < 5 && (group & ((1 << bits) - 1)) === 0;
  return isWhole ? Uint8Array.from(bytes) : undefined;
}
