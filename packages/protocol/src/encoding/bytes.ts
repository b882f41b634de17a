/** UTF-8, hex and byte strings. */

const encoder = new TextEncoder();

/**
 * Encodes a text as UTF-8.
 *
 * @example
 * utf8('é'); // Uint8Array [0xc3, 0xa9]
 */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** From this many characters on, the encoder counts bytes faster than a loop. */
const encoderPays = 64;

/** What the encoder writes to count; what it writes for longer texts is new memory. */
const scratch = new Uint8Array(12_288);

/**
 * Counts the UTF-8 bytes of a well-formed text.
 *
 * @example
 * utf8Length('é'); // 2
 */
export function utf8Length(text: string): number {
  // A UTF-16 unit is three bytes at most.
  if (3 * text.length > scratch.length) return encoder.encode(text).length;
  if (text.length >= encoderPays) return encoder.encodeInto(text, scratch).written;
  let length = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: one more for each half.
    length += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return length;
}

/**
 * Encodes bytes as lowercase hex.
 *
 * @example
 * hex(new Uint8Array([255])); // 'ff'
 */
export function hex(bytes: Uint8Array): string {
  let text = '';
  for (let index = 0; index < bytes.length; index += 1) text += hexBytes[bytes[index] as number];
  return text;
}

/** Each byte in hex: lookups of the DHT compare many Peer IDs. */
const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * Decodes a hex text, either case.
 *
 * @throws TypeError when it is not hex of whole bytes
 * @example
 * fromHex('ff'); // Uint8Array [255]
 */
export function fromHex(text: string): Uint8Array {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(text)) throw new TypeError('not hex');
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index += 1) {
    bytes[index] = Number.parseInt(text.slice(index * 2, index * 2 + 2), 16);
  }
  return bytes;
}

/** Concatenates byte strings. */
export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const result = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    result.set(part, at);
    at += part.length;
  }
  return result;
}

/** Compares bytes in a time that depends on the length only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index += 1) {
    difference |= (a[index] as number) ^ (b[index] as number);
  }
  return difference === 0;
}
