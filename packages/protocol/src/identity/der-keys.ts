/**
 * The outer structure of RSA and ECDSA public keys in DER (SubjectPublicKeyInfo), read only as far
 * as their kind and size need it: a peer's key must not cost more than the sizes allowed here when
 * a signature is verified with it.
 */
import { equalBytes, fromHex } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';

/** Bits of an RSA modulus: shorter ones are not safe, longer ones are slow to verify. */
const rsaBits = { least: 2_048, most: 8_192 } as const;
/** Longest public exponent that common libraries verify with. */
const rsaExponentBytes = 8;
/** Longest key on a curve that libp2p peers use: P-521, uncompressed, has 158 bytes. */
const ecdsaBytes = 256;

const tag = { integer: 0x02, bitString: 0x03, oid: 0x06, sequence: 0x30 } as const;

/** Object identifiers: rsaEncryption, id-ecPublicKey. */
const rsaEncryption = fromHex('2a864886f70d010101');
const ecPublicKey = fromHex('2a8648ce3d0201');
/** P-256, P-384 and P-521. Verification on other curves takes up to a hundred times as long. */
const curves = ['2a8648ce3d030107', '2b81040022', '2b81040023'].map(fromHex);

/**
 * Checks an RSA key: SubjectPublicKeyInfo, a modulus of 2,048 to 8,192 bits, an odd exponent.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkRsaKey(der: Uint8Array): void {
  const inner = new DerReader(publicKeyInfo(der, rsaEncryption).bits);
  const key = new DerReader(inner.last(tag.sequence));
  const modulus = unsignedInteger(key.next(tag.integer));
  const exponent = unsignedInteger(key.last(tag.integer));
  const bits = modulus.length * 8 - Math.clz32(modulus[0] as number) + 24;
  if (bits < rsaBits.least || bits > rsaBits.most) throw malformed('2,048 to 8,192 bits');
  const isOdd = ((exponent.at(-1) as number) & 1) === 1;
  if (
    exponent.length > rsaExponentBytes ||
    !isOdd ||
    (exponent.length === 1 && exponent[0] === 1)
  ) {
    throw malformed('an odd exponent of at most 64 bits');
  }
}

/**
 * Checks the structure of an ECDSA key: SubjectPublicKeyInfo of a named curve of NIST. Whether the
 * point is valid is decided when a signature is verified.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkEcdsaKey(der: Uint8Array): void {
  if (der.length > ecdsaBytes) throw malformed('a shorter key');
  const { parameters, bits } = publicKeyInfo(der, ecPublicKey);
  const curve = new DerReader(parameters).last(tag.oid);
  if (!curves.some((one) => equalBytes(one, curve))) throw malformed('P-256, P-384 or P-521');
  if (bits.length < 2) throw malformed('a point');
}

/** Returns the parameters of the algorithm, and the contents of the key's bit string. */
function publicKeyInfo(
  der: Uint8Array,
  algorithm: Uint8Array,
): { parameters: Uint8Array; bits: Uint8Array } {
  const info = new DerReader(new DerReader(der).last(tag.sequence));
  const identifier = new DerReader(info.next(tag.sequence));
  if (!equalBytes(identifier.next(tag.oid), algorithm)) throw malformed('a key of its type');
  const bits = info.last(tag.bitString);
  if (bits[0] !== 0) throw malformed('a bit string of whole bytes');
  return { parameters: identifier.rest(), bits: bits.subarray(1) };
}

/** Returns a positive integer without the zero byte that DER may put before it. */
function unsignedInteger(bytes: Uint8Array): Uint8Array {
  const [first, second = 0] = bytes;
  if (first === undefined || first >= 0x80) throw malformed('a positive integer');
  if (first !== 0) return bytes;
  if (second < 0x80) throw malformed('an integer in shortest form');
  return bytes.subarray(1);
}

/** Reads elements of DER in order. */
class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Returns the contents of the next element, which must have this tag. */
  next(expected: number): Uint8Array {
    if (this.#byte() !== expected) throw malformed('DER');
    const length = this.#length();
    if (length > this.#bytes.length - this.#at) throw malformed('more bytes');
    const contents = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return contents;
  }

  /** The same for the last element: nothing may follow. */
  last(expected: number): Uint8Array {
    const contents = this.next(expected);
    if (this.#at !== this.#bytes.length) throw malformed('nothing after the key');
    return contents;
  }

  /** Returns the bytes after the elements that were read. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  /** Lengths up to 65,535, in their shortest form. */
  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    if (first === 0x81) {
      const length = this.#byte();
      if (length >= 0x80) return length;
    } else if (first === 0x82) {
      const length = this.#byte() * 256 + this.#byte();
      if (length >= 256) return length;
    }
    throw malformed('a DER length in shortest form');
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw malformed('more bytes');
    this.#at += 1;
    return byte;
  }
}

function malformed(expected: string): Error {
  return badRequest('peer key.data', `malformed public key: expected ${expected}`);
}
