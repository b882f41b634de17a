import { decodeBase64url, encodeBase64url } from '@posthouse/protocol';

/** A canonical text of the same length that differs in one bit. */
export function flipped(text: string): string {
  const bytes = decodeBase64url(text) as Uint8Array;
  bytes[7] = (bytes[7] as number) ^ 1;
  return encodeBase64url(bytes);
}

const p256Order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The other valid form of a P-256 signature: `n - s` in place of `s` (01 §5.1 S2). */
export function withOtherS(signature: string): string {
  const bytes = decodeBase64url(signature) as Uint8Array;
  let s = 0n;
  for (const byte of bytes.subarray(32)) s = (s << 8n) | BigInt(byte);
  let rest = p256Order - s;
  for (let index = 63; index >= 32; index -= 1) {
    bytes[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return encodeBase64url(bytes);
}
