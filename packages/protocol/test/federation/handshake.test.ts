import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { encodeBytesField, encodeVarintField } from '../../src/encoding/protobuf.ts';
import {
  decodeHandshakePayload,
  encodeHandshakePayload,
  handshakeSigningInput,
} from '../../src/federation/index.ts';
import { fromHex, hex, utf8 } from '../../src/index.ts';
import { refusal, refusesEveryCut, survivesRandomBytes } from './decoders.ts';

const payload = {
  identityKey: Uint8Array.of(1, 2, 3),
  identitySignature: Uint8Array.of(4, 5),
  descriptor: '{"é":1}',
};
const encoded = encodeHandshakePayload(payload);

const identityKey = encodeBytesField(1, payload.identityKey);
const signature = encodeBytesField(2, payload.identitySignature);
const extensions = (...fields: Uint8Array[]) => encodeBytesField(4, concatBytes(...fields));
const descriptor = (text: string) => encodeBytesField(1025, utf8(text));
const good = extensions(descriptor(payload.descriptor));

describe('07 §B3: the payload of handshake messages', () => {
  test('has the tags 0a, 12, 22 and, inside extensions, 8a 40', () => {
    expect(hex(encoded)).toBe(`0a03010203${'12020405'}220b8a4008${hex(utf8(payload.descriptor))}`);
  });

  test('what was encoded comes back', () => {
    const bytes = fc.uint8Array({ maxLength: 300 });
    const text = fc.string({ unit: 'binary', maxLength: 40 });
    fc.assert(
      fc.property(bytes, bytes, text, (identityKey, identitySignature, descriptor) => {
        const read = decodeHandshakePayload(
          encodeHandshakePayload({ identityKey, identitySignature, descriptor }),
        );
        expect([hex(read.identityKey), hex(read.identitySignature), read.descriptor]).toEqual([
          hex(identityKey),
          hex(identitySignature),
          descriptor,
        ]);
      }),
    );
  });

  test('no prefix of a payload decodes', () => {
    refusesEveryCut(decodeHandshakePayload, encoded);
  });

  test.each<[string, Uint8Array[]]>([
    ['the fields in another order', [good, signature, identityKey]],
    [
      'repeated fields: the last value counts',
      [
        encodeBytesField(1, Uint8Array.of(9)),
        encodeBytesField(2, good),
        good,
        signature,
        identityKey,
      ],
    ],
    [
      'a repeated descriptor inside extensions: the last value counts',
      [identityKey, signature, extensions(descriptor('{}'), descriptor(payload.descriptor))],
    ],
    [
      'repeated extensions: the last descriptor counts',
      [identityKey, signature, extensions(descriptor('{}')), good],
    ],
    [
      'extensions without a descriptor merge with those before',
      [identityKey, signature, good, extensions()],
    ],
    [
      'extensions of libp2p and unknown fields of each wire type are ignored',
      [
        encodeVarintField(3, 7),
        identityKey,
        fromHex('fd0701020304'),
        signature,
        extensions(
          encodeBytesField(1, utf8('hash')),
          encodeBytesField(2, utf8('/yamux/1.0.0')),
          descriptor(payload.descriptor),
          encodeVarintField(1026, 1),
        ),
        fromHex('2b08012c'),
      ],
    ],
  ])('%s', (_name, fields) => {
    expect(decodeHandshakePayload(concatBytes(...fields))).toEqual(payload);
  });

  test.each<[string, Uint8Array[], RegExp]>([
    ['no identity_key', [signature, good], /identity_key: missing$/],
    ['no identity_sig', [identityKey, good], /identity_sig: missing$/],
    ['no extensions', [identityKey, signature], /relay_descriptor: missing$/],
    ['no relay_descriptor', [identityKey, signature, extensions()], /relay_descriptor: missing$/],
    [
      'identity_key as a varint, though a right one follows',
      [encodeVarintField(1, 1), identityKey, signature, good],
      /identity_key: expected/,
    ],
    ['identity_sig as a varint', [identityKey, encodeVarintField(2, 1), good], /identity_sig: exp/],
    [
      'extensions as a varint',
      [identityKey, signature, good, encodeVarintField(4, 1)],
      /extensions: expected/,
    ],
    [
      'relay_descriptor as a varint',
      [identityKey, signature, extensions(encodeVarintField(1025, 1))],
      /relay_descriptor: expected/,
    ],
    [
      'an encoding error inside extensions',
      [identityKey, signature, good, extensions(Uint8Array.of(0x8a))],
      /extensions: malformed/,
    ],
    [
      'a descriptor that is not UTF-8',
      [identityKey, signature, extensions(encodeBytesField(1025, Uint8Array.of(0xff)))],
      /relay_descriptor: expected UTF-8$/,
    ],
    [
      'a descriptor with an encoded surrogate',
      [identityKey, signature, extensions(encodeBytesField(1025, fromHex('eda080')))],
      /relay_descriptor: expected UTF-8$/,
    ],
  ])('%s is refused', (_name, fields, message) => {
    expect(refusal(() => decodeHandshakePayload(concatBytes(...fields)))).toMatch(message);
  });

  test('a byte order mark stays in the text, and strict JSON refuses it later', () => {
    const bytes = encodeHandshakePayload({ ...payload, descriptor: '\ufeff{}' });
    expect(decodeHandshakePayload(bytes).descriptor).toBe('\ufeff{}');
  });

  test('random bytes decode or are refused', () => {
    survivesRandomBytes(decodeHandshakePayload, [encoded]);
  });

  test('identity_sig signs a prefix and the Noise static key of 32 bytes', () => {
    const key = new Uint8Array(32).fill(7);
    expect(hex(handshakeSigningInput(key))).toBe(
      `${hex(utf8('noise-libp2p-static-key:'))}${'07'.repeat(32)}`,
    );
    expect(() => handshakeSigningInput(key.subarray(1))).toThrow(TypeError);
  });
});
