import { p256 } from '@noble/curves/nist.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { fromHex, hex, utf8 } from '../../src/index.ts';
import { implementations } from './implementations.ts';
import { bigEndian } from './numbers.ts';

const n = p256.Point.Fn.ORDER;
const p = p256.Point.Fp.ORDER;
const privateKey = fromHex('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721');
const big = (bytes: Uint8Array) => BigInt(`0x${hex(bytes)}`);

describe.each(implementations)('01 §5.1: ECDSA P-256 on %s', (_name, { p256: scheme }) => {
  const publicKey = scheme.publicKey(privateKey);
  const message = utf8('sample');
  const signature = scheme.sign(privateKey, message);
  const r = signature.subarray(0, 32);
  const s = signature.subarray(32);
  const verify = (key: Uint8Array, bytes: Uint8Array) => scheme.verify(key, message, bytes);

  test('RFC 6979 §A.2.5: the deterministic signature, whose s is high', () => {
    expect(hex(publicKey)).toBe(
      '0360fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6',
    );
    expect(hex(signature)).toBe(
      'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716' +
        'f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
    );
    expect(big(s) > n / 2n).toBe(true);
    expect(verify(publicKey, signature)).toBe(true);
    expect(scheme.verify(publicKey, utf8('Sample'), signature)).toBe(false);
  });

  test('S2: both (r, s) and (r, n - s) are valid', () => {
    expect(verify(publicKey, concatBytes(r, bigEndian(n - big(s), 32)))).toBe(true);
  });

  test.each<[string, bigint]>([
    ['0', 0n],
    ['n', n],
    ['n + 1', n + 1n],
    ['2^256 - 1', 2n ** 256n - 1n],
  ])('r or s of %s is refused', (_what, value) => {
    expect(verify(publicKey, concatBytes(bigEndian(value, 32), s))).toBe(false);
    expect(verify(publicKey, concatBytes(r, bigEndian(value, 32)))).toBe(false);
  });

  test('only the two prefixes of a compressed point are accepted, each for its own point', () => {
    const accepted = [];
    for (let prefix = 0; prefix < 256; prefix += 1) {
      const key = concatBytes(Uint8Array.of(prefix), publicKey.subarray(1));
      if (verify(key, signature)) accepted.push(prefix);
    }
    expect(accepted).toEqual([3]);
    const mirrored = concatBytes(Uint8Array.of(2), publicKey.subarray(1));
    const own = scheme.publicKey(bigEndian(n - big(privateKey), 32));
    expect(hex(own)).toBe(hex(mirrored));
  });

  test('a point that is no point, and every other encoding, is refused', () => {
    const offCurve = [...Array(8).keys()]
      .map((x) => concatBytes(Uint8Array.of(2), bigEndian(BigInt(x), 32)))
      .filter((key) => !isPoint(key));
    expect(offCurve.length).toBeGreaterThan(1);
    const wrong = [
      ...offCurve,
      concatBytes(Uint8Array.of(2), bigEndian(p, 32)),
      concatBytes(Uint8Array.of(2), bigEndian(p + 5n, 32)),
      concatBytes(Uint8Array.of(2), bigEndian(2n ** 256n - 1n, 32)),
      p256.Point.fromBytes(publicKey).toBytes(false),
      publicKey.subarray(0, 32),
      concatBytes(publicKey, new Uint8Array(1)),
      new Uint8Array(33),
      new Uint8Array(1),
      new Uint8Array(),
    ];
    for (const key of wrong) expect(verify(key, signature)).toBe(false);
  });

  test('a signature of another length, DER too, is refused', () => {
    const der = p256.Signature.fromBytes(signature).toBytes('der');
    for (const bytes of [
      signature.subarray(1),
      concatBytes(signature, new Uint8Array(1)),
      new Uint8Array(),
      der,
    ]) {
      expect(verify(publicKey, bytes)).toBe(false);
    }
  });

  test('an X at or above p is not reduced, even if the reduced one is a point', () => {
    // x = 5 is on the curve; p + 5 still fits in 32 bytes.
    const five = concatBytes(Uint8Array.of(2), bigEndian(5n, 32));
    expect(isPoint(five)).toBe(true);
    expect(isPoint(concatBytes(Uint8Array.of(2), bigEndian(p + 5n, 32)))).toBe(false);
  });
});

describe('01 §5.1: noble and node agree', () => {
  test('on keys, signatures, and every change of one bit', () => {
    const [[, noble], [, node]] = implementations as [
      (typeof implementations)[0],
      (typeof implementations)[1],
    ];
    const key = fc.bigInt({ min: 1n, max: n - 1n }).map((value) => bigEndian(value, 32));
    fc.assert(
      fc.property(key, fc.uint8Array(), fc.nat(97 * 8 - 1), (secret, text, bit) => {
        const publicKey = noble.p256.publicKey(secret);
        const signature = noble.p256.sign(secret, text);
        expect(hex(node.p256.publicKey(secret))).toBe(hex(publicKey));
        expect(hex(node.p256.sign(secret, text))).toBe(hex(signature));
        expect(node.p256.verify(publicKey, text, signature)).toBe(true);
        const changed = concatBytes(publicKey, signature);
        changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
        const [other, rest] = [changed.subarray(0, 33), changed.subarray(33)];
        expect(noble.p256.verify(other, text, rest)).toBe(false);
        expect(node.p256.verify(other, text, rest)).toBe(false);
      }),
      { numRuns: 60 },
    );
  });
});

function isPoint(key: Uint8Array): boolean {
  try {
    p256.Point.fromBytes(key);
    return true;
  } catch {
    return false;
  }
}
