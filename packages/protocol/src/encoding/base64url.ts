/** Canonical unpadded base64url (chapter 01, section 2.5). */

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const values = new Uint8Array(128).fill(255);
for (let index = 0; index < alphabet.length; index += 1) values[alphabet.charCodeAt(index)] = index;

/**
 * Encodes bytes.
 * @example
 * encodeBase64url(new Uint8Array([0])); // 'AA'
 */
export function encodeBase64url(bytes: Uint8Array): string {
  let text = '';
  let index = 0;
  for (; index + 2 < bytes.length; index += 3) {
    const group =
      ((bytes[index] as number) << 16) |
      ((bytes[index + 1] as number) << 8) |
      (bytes[index + 2] as number);
    text +=
      (alphabet[group >> 18] as string) +
      alphabet[(group >> 12) & 63] +
      alphabet[(group >> 6) & 63] +
      alphabet[group & 63];
  }
  const rest = bytes.length - index;
  if (rest === 1) {
    const group = bytes[index] as number;
    text += (alphabet[group >> 2] as string) + alphabet[(group & 3) << 4];
  } else if (rest === 2) {
    const group = ((bytes[index] as number) << 8) | (bytes[index + 1] as number);
    text +=
      (alphabet[group >> 10] as string) + alphabet[(group >> 4) & 63] + alphabet[(group & 15) << 2];
  }
  return text;
}

/**
 * Decodes canonical text; anything else, nonzero pad bits too, gives `undefined` (B1 to B5).
 * The empty text is zero bytes.
 *
 * @example
 * decodeBase64url('AA'); // Uint8Array [0]
 * decodeBase64url('AB'); // undefined: pad bits are not zero
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  const rest = text.length % 4;
  if (rest === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let at = 0;
  let group = 0;
  let bits = 0;
  for (let index = 0; index < text.length; index += 1) {
    const value = values[text.charCodeAt(index)];
    if (value === undefined || value === 255) return undefined;
    group = ((group << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at] = (group >> bits) & 255;
      at += 1;
    }
  }
  if ((group & ((1 << bits) - 1)) !== 0) return undefined;
  return bytes;
}

/**
 * Counts the bytes of a canonical text without decoding it; `undefined` if it is not canonical. For
 * large values that are only passed on.
 */
export function base64urlLength(text: string): number | undefined {
  const rest = text.length % 4;
  if (rest === 1) return undefined;
  for (let index = 0; index < text.length; index += 1) {
    const value = values[text.charCodeAt(index)];
    if (value === undefined || value === 255) return undefined;
  }
  const last = rest === 0 ? 0 : (values[text.charCodeAt(text.length - 1)] as number);
  if ((rest === 2 && (last & 15) !== 0) || (rest === 3 && (last & 3) !== 0)) return undefined;
  return Math.floor((text.length * 3) / 4);
}

/** The last character of canonical text by its length modulo 4. */
const lastCharacter: Readonly<Record<number, string>> = {
  0: '[A-Za-z0-9_-]',
  2: '[AQgw]',
  3: '[AEIMQUYcgkosw048]',
};

/**
 * Returns the pattern that canonical text of exactly `bytes` bytes matches, for schemas: it covers
 * B1 to B7. `prefix` is literal text before it, such as `dev_`.
 */
export function base64urlPattern(bytes: number, prefix = ''): string {
  const length = Math.ceil((bytes * 4) / 3);
  return `^${prefix}[A-Za-z0-9_-]{${length - 1}}${lastCharacter[length % 4]}$`;
}
