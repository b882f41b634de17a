import { ed25519 } from '@noble/curves/ed25519.js';
import { sha512 } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isAcceptableEd25519Key,
  isAcceptableEd25519Signature,
  noblePrimitives,
} from '../../src/crypto/index.ts';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { fromHex, utf8 } from '../../src/index.ts';
import { craft, mod, multiply, number, order, Point, torsion } from './crafted.ts';
import { implementations } from './implementations.ts';
import { littleEndian } from './numbers.ts';

const p = 2n ** 255n - 19n;

const scalar = fc.bigInt({ min: 1n, max: order - 1n });
const message = fc.uint8Array({ maxLength: 40 });

describe.each(implementations)('01 §5.2: Ed25519 on %s', (_name, { ed25519: scheme }) => {
  test('RFC 8032 §7.1, test 2: key, signature, verification', () => {
    const seed = fromHex('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');
    const publicKey = fromHex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c');
    const signature = fromHex(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    );
    expect(Buffer.from(scheme.publicKey(seed))).toEqual(Buffer.from(publicKey));
    expect(Buffer.from(scheme.sign(seed, fromHex('72')))).toEqual(Buffer.from(signature));
    expect(scheme.verify(publicKey, fromHex('72'), signature)).toBe(true);
    expect(scheme.verify(publicKey, fromHex('73'), signature)).toBe(false);
    expect(scheme.verify(publicKey, new Uint8Array(), signature)).toBe(false);
  });

  test('the same verdict as any conforming implementation on crafted torsion parts', () => {
    const part = fc.bigInt({ min: 0n, max: 7n });
    let refused = 0;
    fc.assert(
      fc.property(scalar, scalar, part, part, message, (a, r, keyTorsion, nonceTorsion, text) => {
        const input = { a, r, keyTorsion, nonceTorsion, message: text };
        const { publicKey, signature, valid } = craft(input);
        if (!valid) refused += 1;
        expect(scheme.verify(publicKey, text, signature)).toBe(valid);
      }),
      { numRuns: 200 },
    );
    expect(refused).toBeGreaterThan(50);
  });

  test('a signature that only the cofactored equation accepts is refused', () => {
    const text = utf8('cofactor');
    const input = { a: 5n, r: 7n, keyTorsion: 0n, nonceTorsion: 1n, message: text };
    const { publicKey, signature } = craft(input);
    expect(ed25519.verify(signature, text, publicKey)).toBe(true);
    expect(scheme.verify(publicKey, text, signature)).toBe(false);
  });

  test('S = 0 is a scalar like any other', () => {
    // R = -k·A would make it valid, and k depends on R: no such R can be found, so it never verifies.
    const publicKey = Point.BASE.multiply(3n).toBytes();
    const signature = concatBytes(Point.BASE.toBytes(), new Uint8Array(32));
    expect(scheme.verify(publicKey, utf8('x'), signature)).toBe(false);
  });

  test('R of small order is refused although the equation holds', () => {
    for (let part = 0n; part < 8n; part += 1n) {
      for (let tries = 0; tries < 64; tries += 1) {
        const input = { a: 3n, r: 0n, keyTorsion: part, nonceTorsion: part };
        const { publicKey, signature, valid } = craft({ ...input, message: Uint8Array.of(tries) });
        if (!valid) continue;
        expect(scheme.verify(publicKey, Uint8Array.of(tries), signature)).toBe(false);
      }
    }
  });

  test('S at or above the group order is refused', () => {
    const seed = new Uint8Array(32).fill(7);
    const publicKey = scheme.publicKey(seed);
    const signature = scheme.sign(seed, utf8('x'));
    const s = number(signature.subarray(32));
    for (let above = s + order; above < 2n ** 256n; above += order) {
      const other = concatBytes(signature.subarray(0, 32), littleEndian(above, 32));
      expect(scheme.verify(publicKey, utf8('x'), other)).toBe(false);
    }
  });

  test('a key of small order is refused although the equation holds', () => {
    for (let index = 0n; index < 8n; index += 1n) {
      const publicKey = multiply(torsion, index).toBytes();
      for (let tries = 0; tries < 64; tries += 1) {
        // R = r·B and S = r: holds wherever k·A is the identity.
        const text = Uint8Array.of(tries);
        const r = BigInt(tries + 1);
        const signature = concatBytes(Point.BASE.multiply(r).toBytes(), littleEndian(r, 32));
        expect(scheme.verify(publicKey, text, signature)).toBe(false);
      }
    }
  });

  test('keys whose encoding is not canonical are refused', () => {
    for (let extra = 0n; extra < 19n; extra += 1n) {
      for (const sign of [0n, 2n ** 255n]) {
        const publicKey = littleEndian(p + extra + sign, 32);
        const signature = concatBytes(Point.BASE.toBytes(), littleEndian(1n, 32));
        expect(scheme.verify(publicKey, utf8('x'), signature)).toBe(false);
      }
    }
  });

  test('a nonce point R whose encoding is not canonical is refused', () => {
    const publicKey = Point.BASE.multiply(3n).toBytes();
    // y = p + 1 stands for the identity, with a free sign bit.
    for (const encoded of [littleEndian(p + 1n, 32), littleEndian(2n ** 255n + 1n, 32)]) {
      const k = mod(number(sha512(concatBytes(encoded, publicKey, utf8('x')))));
      const signature = concatBytes(encoded, littleEndian(mod(k * 3n), 32));
      expect(scheme.verify(publicKey, utf8('x'), signature)).toBe(false);
    }
  });

  test('what is malformed does not verify and does not throw', () => {
    const seed = new Uint8Array(32).fill(7);
    const publicKey = scheme.publicKey(seed);
    const signature = scheme.sign(seed, utf8('x'));
    const notOnCurve = littleEndian(2n, 32);
    expect(scheme.verify(notOnCurve, utf8('x'), signature)).toBe(false);
    expect(scheme.verify(publicKey.subarray(1), utf8('x'), signature)).toBe(false);
    expect(scheme.verify(concatBytes(publicKey, new Uint8Array(1)), utf8('x'), signature)).toBe(
      false,
    );
    expect(scheme.verify(publicKey, utf8('x'), signature.subarray(1))).toBe(false);
    expect(scheme.verify(publicKey, utf8('x'), concatBytes(signature, new Uint8Array(1)))).toBe(
      false,
    );
    expect(scheme.verify(new Uint8Array(), utf8('x'), new Uint8Array())).toBe(false);
  });
});

describe('01 §5.2: noble and node agree', () => {
  test('on keys, signatures, and every change of one bit', () => {
    const [[, noble], [, node]] = implementations as [
      (typeof implementations)[0],
      (typeof implementations)[1],
    ];
    const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(seeds, message, fc.nat(96 * 8 - 1), (seed, text, bit) => {
        const publicKey = noble.ed25519.publicKey(seed);
        const signature = noble.ed25519.sign(seed, text);
        expect(Buffer.from(node.ed25519.publicKey(seed))).toEqual(Buffer.from(publicKey));
        expect(Buffer.from(node.ed25519.sign(seed, text))).toEqual(Buffer.from(signature));
        const changed = concatBytes(publicKey, signature);
        changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
        const [key, rest] = [changed.subarray(0, 32), changed.subarray(32)];
        expect(noble.ed25519.verify(key, text, rest)).toBe(false);
        expect(node.ed25519.verify(key, text, rest)).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  test('keys are refused from p on, and S from the group order on, and not before', () => {
    const base = Point.BASE.toBytes();
    for (const sign of [0n, 2n ** 255n]) {
      expect(isAcceptableEd25519Key(littleEndian(p - 2n + sign, 32))).toBe(true);
      expect(isAcceptableEd25519Key(littleEndian(p + sign, 32))).toBe(false);
      expect(isAcceptableEd25519Key(littleEndian(2n ** 255n - 1n + sign, 32))).toBe(false);
    }
    const isAcceptable = (s: bigint) =>
      isAcceptableEd25519Signature(concatBytes(base, littleEndian(s, 32)));
    for (const s of [0n, 1n, order - 1n, order - 256n]) expect(isAcceptable(s)).toBe(true);
    for (const s of [order, order + 1n, 2n ** 252n + 2n ** 125n, 2n ** 256n - 1n]) {
      expect(isAcceptable(s)).toBe(false);
    }
    const numbers = fc.bigInt({ min: 0n, max: 2n ** 253n });
    fc.assert(fc.property(numbers, (s) => isAcceptable(s) === s < order));
  });

  test('the list of refused keys holds exactly the points of small order', () => {
    const small = new Set<string>();
    for (let index = 0n; index < 8n; index += 1n) {
      const bytes = multiply(torsion, index).toBytes();
      small.add(Buffer.from(bytes).toString('hex'));
      expect(isAcceptableEd25519Key(bytes)).toBe(false);
      expect(isAcceptableEd25519Key(flipSign(bytes))).toBe(false);
    }
    expect(small.size).toBe(8);
    fc.assert(
      fc.property(scalar, fc.bigInt({ min: 0n, max: 7n }), (a, part) => {
        const point = Point.BASE.multiply(a).add(multiply(torsion, part));
        expect(isAcceptableEd25519Key(point.toBytes())).toBe(true);
      }),
    );
    expect(isAcceptableEd25519Key(new Uint8Array(31))).toBe(false);
    expect(isAcceptableEd25519Key(littleEndian(p, 32))).toBe(false);
    expect(isAcceptableEd25519Key(littleEndian(p - 2n, 32))).toBe(true);
    expect(noblePrimitives.ed25519.verify(littleEndian(p, 32), utf8(''), new Uint8Array(64))).toBe(
      false,
    );
  });
});

function flipSign(bytes: Uint8Array): Uint8Array {
  const other = bytes.slice();
  other[31] = (other[31] as number) ^ 0x80;
  return other;
}
