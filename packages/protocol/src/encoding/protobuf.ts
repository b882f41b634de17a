/**
 * The protobuf wire format, as far as libp2p's messages need it (chapter 07, sections B3 and B6).
 * Reading is strict about encodings and about the wire types of known fields; unknown fields are
 * skipped. All byte values are views of the input, so reading holds no copies.
 */
import { badRequest } from '../errors.ts';
import { concatBytes } from './bytes.ts';

/**
 * The value of a field: a number for a varint, bytes for a length-delimited field, `undefined` for
 * wire types that no message of the protocol uses (fixed 32 and 64 bits, groups).
 */
export type ProtobufValue = number | Uint8Array | undefined;

const wire = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const;

/** Largest field number that the format allows. */
const maxFieldNumber = 2 ** 29 - 1;
/** A protobuf varint holds 64 bits; unlike frame prefixes (01 §5.6), longer forms are allowed. */
const varintBytes = 10;
/** Nested groups of unknown fields that are skipped before the message is refused. */
const groupDepth = 16;

/**
 * Reads the fields of a message in order: number and value. A field in a group has number 0: it is skipped, and a caller
 * that counts fields counts it, too.
 *
 * @param path what errors call the message
 * @throws ProtocolError `bad_request` at the first field that is not encoded correctly
 */
export function* readProtobuf(
  bytes: Uint8Array,
  path: string,
): Generator<readonly [number, ProtobufValue]> {
  const reader = new WireReader(bytes, path);
  while (!reader.atEnd) {
    const { number, type } = reader.tag();
    yield [number, type === wire.startGroup ? yield* reader.group(number) : reader.value(type)];
  }
}

/** Returns the bytes of a length-delimited field; any other wire type is an error. */
export function bytesField(value: ProtobufValue, path: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw badRequest(path, 'expected a length-delimited field');
}

/** Returns the number of a varint field; any other wire type is an error. */
export function varintField(value: ProtobufValue, path: string): number {
  if (typeof value === 'number') return value;
  throw badRequest(path, 'expected a varint field');
}

/** Encodes a varint field; zero is written too. */
export function encodeVarintField(number: number, value: number): Uint8Array {
  return Uint8Array.from([...varint(number * 8 + wire.varint), ...varint(value)]);
}

/** Encodes a length-delimited field; an empty value is written too. */
export function encodeBytesField(number: number, value: Uint8Array): Uint8Array {
  const head = [...varint(number * 8 + wire.bytes), ...varint(value.length)];
  return concatBytes(Uint8Array.from(head), value);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}

class WireReader {
  readonly #bytes: Uint8Array;
  readonly #path: string;
  #at = 0;

  constructor(bytes: Uint8Array, path: string) {
    this.#bytes = bytes;
    this.#path = path;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  tag(): { number: number; type: number } {
    const tag = this.#varint();
    const number = Math.floor(tag / 8);
    if (number < 1 || number > maxFieldNumber) throw this.#error('a field number in range');
    return { number, type: tag % 8 };
  }

  value(type: number): ProtobufValue {
    switch (type) {
      case wire.varint:
        return this.#varint();
      case wire.bytes:
        return this.#take(this.#varint());
      case wire.fixed32:
        this.#take(4);
        return undefined;
      case wire.fixed64:
        this.#take(8);
        return undefined;
      default:
        throw this.#error('a known wire type');
    }
  }

  /** Skips to the end of a group; groups inside it end before it does. */
  *group(number: number): Generator<readonly [number, undefined], undefined> {
    const open = [number];
    while (open.length > 0) {
      const inner = this.tag();
      if (inner.type === wire.startGroup) {
        if (open.length === groupDepth) throw this.#error('fewer nested groups');
        open.push(inner.number);
      } else if (inner.type === wire.endGroup) {
        if (open.pop() !== inner.number) throw this.#error('the end of the open group');
      } else {
        this.value(inner.type);
      }
      yield [0, undefined];
    }
  }

  /** Reads a varint of 64 bits. Above 2^53 it is rounded; no known field has such values. */
  #varint(): number {
    let value = 0;
    for (let index = 0; index < varintBytes; index += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw this.#error('more bytes');
      this.#at += 1;
      if (index === varintBytes - 1 && byte > 1) break;
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value;
    }
    throw this.#error('a varint of at most 64 bits');
  }

  #take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw this.#error('more bytes');
    const taken = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return taken;
  }

  #error(expected: string): Error {
    return badRequest(this.#path, `malformed protobuf: expected ${expected}`);
  }
}
