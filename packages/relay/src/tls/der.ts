/** A minimal DER encoder (X.690): only what a certificate needs. */

const concat = (parts: readonly Uint8Array[]) => Buffer.concat(parts);

function element(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = concat(content);
  if (body.length < 0x80) return concat([Uint8Array.of(tag, body.length), body]);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest = Math.floor(rest / 256)) length.unshift(rest % 256);
  return concat([Uint8Array.of(tag, 0x80 | length.length, ...length), body]);
}

export const sequence = (...items: readonly Uint8Array[]) => element(0x30, ...items);
export const set = (...items: readonly Uint8Array[]) => element(0x31, ...items);
export const octets = (content: Uint8Array) => element(0x04, content);
export const utf8 = (text: string) => element(0x0c, Buffer.from(text));
export const yes = () => element(0x01, Uint8Array.of(0xff));
/** Explicit tag `[n]` around whole elements. */
export const tagged = (n: number, ...items: readonly Uint8Array[]) => element(0xa0 | n, ...items);
/** Implicit tag `[n]`, replacing a primitive element's own tag. */
export const implicit = (n: number, content: Uint8Array) => element(0x80 | n, content);

/** A nonnegative integer of big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  let from = 0;
  while (from < bytes.length - 1 && bytes[from] === 0) from += 1;
  const rest = bytes.subarray(from);
  return element(0x02, ((rest[0] ?? 0) & 0x80) === 0 ? Buffer.alloc(0) : Buffer.alloc(1), rest);
}

/** A bit string of whole bytes. */
export const bits = (content: Uint8Array) => element(0x03, Uint8Array.of(0), content);

/** A bit string with the given bits set, all below 8. */
export function flags(...set: readonly number[]): Buffer {
  const byte = set.reduce((value, bit) => value | (0x80 >> bit), 0);
  return element(0x03, Uint8Array.of(7 - Math.max(...set), byte));
}

/** An object identifier from its dotted text. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const group = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) {
      group.unshift((left % 128) | 0x80);
    }
    bytes.push(...group);
  }
  return element(0x06, Uint8Array.from(bytes));
}

/** A time of RFC 5280, section 4.1.2.5, from Unix seconds. */
export function time(seconds: number): Buffer {
  const digits = new Date(seconds * 1_000).toISOString().replace(/[-:T]|\.\d{3}/g, '');
  const isShort = digits < '2050';
  return element(isShort ? 0x17 : 0x18, Buffer.from(isShort ? digits.slice(2) : digits));
}
