/**
 * Character references of CommonMark bodies, in the place of the library `entities` where the parser
 * is published: its table is the larger part of the parser (decision 0031).
 */
import { namedReferences } from './named-references.ts';

/**
 * Decodes the character references of a text that end in a semicolon: `&copy; &copy` is `© &copy`.
 * Unknown names stay as they are.
 */
export function decodeHTMLStrict(text: string): string {
  return text.replace(
    /&(?:#x([\da-f]+)|#(\d+)|([a-z][a-z\d]*));/gi,
    (written, hex, digits, name) =>
      name === undefined ? numbered(hex, digits) : (namedReferences().get(name) ?? written),
  );
}

/** What the HTML standard makes of the code points 128 to 159; 0 stands for the same. */
const replaced = [
  ...[8364, 0, 8218, 402, 8222, 8230, 8224, 8225, 710, 8240, 352, 8249, 338, 0, 381, 0],
  ...[0, 8216, 8217, 8220, 8221, 8226, 8211, 8212, 732, 8482, 353, 8250, 339, 0, 382, 376],
];

function numbered(hex: string | undefined, digits: string): string {
  const code = hex === undefined ? Number.parseInt(digits, 10) : Number.parseInt(hex, 16);
  const isSurrogate = code >= 0xd800 && code <= 0xdfff;
  if (code === 0 || isSurrogate || code > 0x10ffff) return '\ufffd';
  return String.fromCodePoint(replaced[code - 128] || code);
}
