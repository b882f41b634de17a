import { createHash, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import {
  decodePeerKey,
  encodePeerKey,
  formatPeerId,
  type PeerKey,
  parsePeerId,
  peerIdOfKey,
  peerPublicKeyOf,
} from '../../src/federation/index.ts';
import { fromHex, hex, peerIdOf } from '../../src/index.ts';
import { nodePrimitives as primitives } from '../../src/node/primitives.ts';
import { refusal, refusesEveryCut, survivesRandomBytes } from './decoders.ts';

/** DER of an element. */
function der(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const bytes = concatBytes(...contents);
  const length = bytes.length;
  const head =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return concatBytes(Uint8Array.of(tag, ...head), bytes);
}

const rsaAlgorithm = fromHex('300d06092a864886f70d0101010500');

/** An RSA key of so many bits, not one that a private key exists for. */
function rsa({
  bits = 2_048,
  exponent = fromHex('010001'),
  algorithm = rsaAlgorithm,
  unusedBits = 0,
} = {}): Uint8Array {
  const modulus = new Uint8Array(Math.ceil(bits / 8)).fill(0xff);
  modulus[0] = 0xff >> (modulus.length * 8 - bits);
  const lead = (modulus[0] as number) >= 0x80 ? Uint8Array.of(0) : new Uint8Array();
  const key = der(0x30, der(0x02, lead, modulus), der(0x02, exponent));
  return der(0x30, algorithm, der(0x03, Uint8Array.of(unusedBits), key));
}

const spki = (type: 'rsa' | 'ec', options: object): Uint8Array =>
  // The overloads of the function name each type of key separately.
  Uint8Array.from(
    generateKeyPairSync(type as 'ec', options as { namedCurve: string }).publicKey.export({
      type: 'spki',
      format: 'der',
    }),
  );

/** Keys of the four kinds: the first three of libp2p's published test vectors, and made ones. */
const encodings = {
  ed25519: '080112201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e',
  secp256k1: '08021221037777e994e452c21604f91de093ce415f5432f701dd8cd1a7a6fea0e630bfca99',
  ecdsa:
    '0803125b3059301306072a8648ce3d020106082a8648ce3d03010703420004de3d300fa36ae0e8f5d530899d83abab44abf3161f162a4bc901d8e6ecda020e8b6d5f8da30525e71d6851510c098e5c47c646a597fb4dcec034e9f77c409e62',
  rsa: hex(encodePeerKey({ type: 'rsa', data: spki('rsa', { modulusLength: 2_048 }) })),
} as const satisfies Record<PeerKey['type'], string>;

const every = Object.entries(encodings) as [PeerKey['type'], string][];
const ecdsaOn = (namedCurve: string) => {
  const data = spki('ec', { namedCurve });
  return hex(concatBytes(fromHex('080312'), varintOf(data.length), data));
};
const varintOf = (length: number) =>
  length < 0x80 ? Uint8Array.of(length) : Uint8Array.of((length & 0x7f) | 0x80, length >> 7);

const head = { rsa: '0800', ed25519: '0801', secp256k1: '0802', ecdsa: '0803' } as const;
const ed25519 = fromHex(encodings.ed25519);

describe('07 §B2: keys of peers', () => {
  test.each(every)('%s: decodes, and its canonical form is the same bytes', (type, text) => {
    const key = decodePeerKey(fromHex(text));
    expect(key.type).toBe(type);
    expect(text.startsWith(head[type])).toBe(true);
    expect(hex(encodePeerKey(key))).toBe(text);
  });

  test.each(every)('%s: no prefix decodes', (_type, text) => {
    refusesEveryCut(decodePeerKey, fromHex(text));
  });

  test('keys of OpenSSL decode: RSA 3,072, P-384 and P-521', () => {
    for (const [type, data] of [
      ['rsa', spki('rsa', { modulusLength: 3_072 })],
      ['ecdsa', spki('ec', { namedCurve: 'P-384' })],
      ['ecdsa', spki('ec', { namedCurve: 'P-521' })],
    ] as const) {
      expect(decodePeerKey(encodePeerKey({ type, data }))).toEqual({ type, data });
    }
  });

  test('the last value of a field counts, and unknown fields are ignored', () => {
    const { data } = decodePeerKey(ed25519);
    const other = fromHex('08031200');
    const unknown = fromHex('1807220101');
    expect(decodePeerKey(concatBytes(other, unknown, ed25519, unknown))).toEqual({
      type: 'ed25519',
      data,
    });
    expect(refusal(() => decodePeerKey(concatBytes(ed25519, other)))).toBeDefined();
  });

  test('a Peer ID is derived from the canonical form', () => {
    const reversed = concatBytes(ed25519.subarray(2), Uint8Array.of(0x08, 0x81, 0x80, 0x00));
    expect(hex(encodePeerKey(decodePeerKey(reversed)))).toBe(encodings.ed25519);
    expect(peerIdOfKey(primitives, decodePeerKey(reversed))).toEqual(
      peerIdOfKey(primitives, decodePeerKey(ed25519)),
    );
  });

  test.each([
    ['', 'nothing'],
    [encodings.ed25519.slice(4), 'no type'],
    ['0801', 'no data'],
    [`0804${encodings.ed25519.slice(4)}`, 'an unknown type'],
    [`08ffffffffffffffffff01${encodings.ed25519.slice(4)}`, 'a negative type'],
    [`0a0101${encodings.ed25519.slice(4)}`, 'a type that is no varint'],
    ['08011001', 'data that is no bytes'],
    [`0801121f${'11'.repeat(31)}`, 'an Ed25519 key of 31 bytes'],
    [`08011221${'11'.repeat(33)}`, 'an Ed25519 key of 33 bytes'],
    [`08021221${'04'.repeat(33)}`, 'a secp256k1 point that is not compressed'],
    [`08021220${'02'.repeat(32)}`, 'a secp256k1 point of 32 bytes'],
    [`${encodings.ed25519}00`, 'a byte after the last field'],
    [ecdsaOn('sect571r1'), 'an ECDSA key on a curve that is slow to verify'],
    [ecdsaOn('secp256k1'), 'an ECDSA key on a curve that is not of NIST'],
    [encodings.ecdsa.replace('0803', '0800'), 'an ECDSA key called RSA'],
    [encodings.rsa.replace('0800', '0803'), 'an RSA key called ECDSA'],
  ])('%s is no key: %s', (text) => {
    expect(refusal(() => decodePeerKey(fromHex(text)))).toMatch(/^peer key/);
  });

  test.each([
    [2_047, false],
    [2_048, true],
    [2_049, true],
    [8_191, true],
    [8_192, true],
    [8_193, false],
    [16_384, false],
  ])('an RSA key of %i bits: %s', (bits, fits) => {
    const encode = () => encodePeerKey({ type: 'rsa', data: rsa({ bits }) });
    if (fits) expect(decodePeerKey(encode()).type).toBe('rsa');
    else expect(refusal(encode)).toMatch(/bits$/);
  });

  test.each([
    ['01', 'one'],
    ['010000', 'even'],
    ['00', 'zero'],
    ['0003', 'not in shortest form'],
    ['83', 'negative'],
    [`01${'00'.repeat(7)}01`, 'of 65 bits'],
  ])('an RSA exponent %s is refused: %s', (exponent) => {
    const data = rsa({ exponent: fromHex(exponent) });
    expect(refusal(() => encodePeerKey({ type: 'rsa', data }))).toMatch(/^peer key\.data/);
  });

  test('bytes in a key that are not DER in shortest form are refused', () => {
    const good = rsa();
    for (const data of [
      concatBytes(good, Uint8Array.of(0)),
      good.subarray(0, -1),
      // The outer length 0x0122 with a leading zero byte.
      concatBytes(fromHex('30830001'), good.subarray(3)),
      rsa({ unusedBits: 3 }),
      rsa({ algorithm: fromHex('300906072a8648ce3d0201') }),
      der(0x30, der(0x30, der(0x06)), der(0x03, Uint8Array.of(0))),
    ]) {
      expect(refusal(() => encodePeerKey({ type: 'rsa', data }))).toMatch(/^peer key\.data/);
    }
  });

  test('random bytes decode to a key or are refused', () => {
    survivesRandomBytes(
      decodePeerKey,
      every.map(([, text]) => fromHex(text)),
    );
  });

  test('a decoded key is no view of the input', () => {
    const input = ed25519.slice();
    const { data } = decodePeerKey(input);
    input.fill(0);
    expect(hex(data)).toBe(encodings.ed25519.slice(8));
  });
});

describe('07 §B2: Peer IDs of all kinds', () => {
  test.each(every)('%s: up to 42 bytes the key itself, else its SHA-256', (_type, text) => {
    const key = decodePeerKey(fromHex(text));
    const peerId = peerIdOfKey(primitives, key);
    const digest = createHash('sha256').update(fromHex(text)).digest('hex');
    const short = text.length / 2 <= 42;
    expect(hex(peerId)).toBe(
      short ? `00${(text.length / 2).toString(16)}${text}` : `1220${digest}`,
    );
    expect(parsePeerId(formatPeerId(peerId))).toEqual(peerId);
    expect(peerPublicKeyOf(peerId)).toEqual(short ? key : undefined);
  });

  test('of an Ed25519 key it is the one of the text form', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (data) => {
        const peerId = peerIdOfKey(primitives, { type: 'ed25519', data });
        expect(formatPeerId(peerId)).toBe(peerIdOf(data));
        expect(peerPublicKeyOf(peerId)).toEqual({ type: 'ed25519', data });
      }),
    );
  });

  test.each([
    ['0024', 'cut short'],
    [`0004${encodings.ed25519}`, 'another length'],
    [`0027${encodings.ed25519}180701`.slice(0, 82), 'an unknown field after the key'],
    [`0024${'11'.repeat(36)}`, 'no protobuf'],
    [`0026${encodings.ed25519.replace('0801', '08818000')}`, 'not the canonical form'],
    [`1220${'11'.repeat(32)}`, 'a digest'],
    ['', 'nothing'],
  ])('%s includes no key: %s', (text) => {
    expect(peerPublicKeyOf(fromHex(text))).toBeUndefined();
  });
});
