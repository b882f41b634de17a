import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { fromHex, hex, utf8 } from '../../src/index.ts';
import { implementations } from './implementations.ts';
import { littleEndian } from './numbers.ts';

const p = 2n ** 255n - 19n;
const alice = fromHex('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a');
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe.each(implementations)(
  '01 §5.3, §5.4: digests, X25519, HKDF and AES-GCM on %s',
  (_name, it) => {
    test('SHA-256 of "abc", RIPEMD-160 of "abc", HMAC and HKDF of their RFCs', () => {
      expect(hex(it.sha256(utf8('abc')))).toBe(
        'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      );
      expect(hex(it.ripemd160(utf8('abc')))).toBe('8eb208f7e05d987a9b044a8e98c6b087f15a0bfc');
      // RFC 4231, test case 2.
      expect(hex(it.hmacSha256(utf8('Jefe'), utf8('what do ya want for nothing?')))).toBe(
        '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
      );
      // RFC 5869, test case 1.
      const okm = it.hkdfSha256({
        secret: new Uint8Array(22).fill(0x0b),
        salt: fromHex('000102030405060708090a0b0c'),
        info: fromHex('f0f1f2f3f4f5f6f7f8f9'),
        length: 42,
      });
      expect(hex(okm)).toBe(
        '3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865',
      );
    });

    test('X25519: RFC 7748 §6.1, both ways', () => {
      const bob = fromHex('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb');
      expect(hex(it.x25519.publicKey(alice))).toBe(
        '8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a',
      );
      expect(hex(it.x25519.publicKey(bob))).toBe(
        'de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f',
      );
      const secret = '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742';
      expect(hexOrNone(it.x25519.shared(alice, it.x25519.publicKey(bob)))).toBe(secret);
      expect(hexOrNone(it.x25519.shared(bob, it.x25519.publicKey(alice)))).toBe(secret);
    });

    test.each<[string, bigint]>([
      ['0', 0n],
      ['1', 1n],
      ['p - 1', p - 1n],
      ['p', p],
      ['p + 1', p + 1n],
      ['0 with the top bit set', 2n ** 255n],
      ['1 with the top bit set', 2n ** 255n + 1n],
      ['a point of order 8', 0xb8495f16056286fdb1329ceb8d09da6ac49ff1fae35616aeb8413b7c7aebe0n],
      [
        'the other point of order 8',
        39382357235489614581723060781553021112529911719440698176882885853963445705823n,
      ],
    ])('01 §5.3: u = %s has an all-zero result and gives none', (_what, u) => {
      expect(it.x25519.shared(alice, littleEndian(u, 32))).toBe(undefined);
    });

    test('a peer key of another length gives none', () => {
      expect(it.x25519.shared(alice, new Uint8Array(31).fill(9))).toBe(undefined);
      expect(it.x25519.shared(alice, new Uint8Array(33).fill(9))).toBe(undefined);
    });

    test('AES-256-GCM: the test case with associated data of the GCM specification', () => {
      const input = {
        key: fromHex('feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308'),
        nonce: fromHex('cafebabefacedbaddecaf888'),
        aad: fromHex('feedfacedeadbeeffeedfacedeadbeefabaddad2'),
      };
      const plaintext = fromHex(
        'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72' +
          '1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39',
      );
      const sealed = it.aesGcm.seal({ ...input, data: plaintext });
      expect(hex(sealed)).toBe(
        '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa' +
          '8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662' +
          '76fc6ece0f4e1768cddf8853bb2d551b',
      );
      expect(hex(it.aesGcm.open({ ...input, data: sealed }) as Uint8Array)).toBe(hex(plaintext));
    });

    test('AES-GCM: any change of ciphertext, tag, nonce, key or associated data opens nothing', () => {
      const input = { key: alice, nonce: new Uint8Array(12).fill(1), aad: utf8('aad') };
      const sealed = it.aesGcm.seal({ ...input, data: utf8('plaintext') });
      for (let at = 0; at < sealed.length; at += 1) {
        const changed = sealed.slice();
        changed[at] = (changed[at] as number) ^ 1;
        expect(it.aesGcm.open({ ...input, data: changed })).toBe(undefined);
      }
      expect(it.aesGcm.open({ ...input, data: sealed.subarray(1) })).toBe(undefined);
      expect(it.aesGcm.open({ ...input, data: sealed.subarray(0, 15) })).toBe(undefined);
      expect(it.aesGcm.open({ ...input, data: new Uint8Array() })).toBe(undefined);
      expect(it.aesGcm.open({ ...input, aad: utf8('aaD'), data: sealed })).toBe(undefined);
      const nonce = new Uint8Array(12).fill(2);
      expect(it.aesGcm.open({ ...input, nonce, data: sealed })).toBe(undefined);
      expect(it.aesGcm.open({ ...input, key: otherKey, data: sealed })).toBe(undefined);
    });

    test.each([
      ['a key of 31 bytes', { key: new Uint8Array(31) }],
      ['a key of 16 bytes', { key: new Uint8Array(16) }],
      ['no nonce', { nonce: new Uint8Array() }],
      ['a nonce of 13 bytes', { nonce: new Uint8Array(13) }],
    ])('AES-GCM: %s opens nothing', (_what, part) => {
      const input = { key: alice, nonce: new Uint8Array(12), aad: utf8('aad') };
      const sealed = it.aesGcm.seal({ ...input, data: utf8('plaintext') });
      expect(it.aesGcm.open({ ...input, ...part, data: sealed })).toBe(undefined);
    });

    test('AES-GCM: a tag alone is the empty plaintext, and nothing else is', () => {
      const input = { key: alice, nonce: new Uint8Array(12), aad: new Uint8Array() };
      const tag = it.aesGcm.seal({ ...input, data: new Uint8Array() });
      expect(tag.length).toBe(16);
      expect(it.aesGcm.open({ ...input, data: tag })?.length).toBe(0);
      expect(it.aesGcm.open({ ...input, data: new Uint8Array(16) })).toBe(undefined);
    });
  },
);

const otherKey = new Uint8Array(32).fill(3);

describe('noble and node agree', () => {
  const [[, noble], [, node]] = implementations as [
    (typeof implementations)[0],
    (typeof implementations)[1],
  ];

  test('on digests, HMAC and HKDF of anything', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), fc.integer({ min: 1, max: 80 }), (a, b, n) => {
        expect(hex(node.sha256(a))).toBe(hex(noble.sha256(a)));
        expect(hex(node.hmacSha256(a, b))).toBe(hex(noble.hmacSha256(a, b)));
        const input = { secret: a, salt: b, info: a, length: n };
        expect(hex(node.hkdfSha256(input))).toBe(hex(noble.hkdfSha256(input)));
      }),
    );
  });

  test('on X25519 keys and secrets, keys with the top bit set and above p included', () => {
    const peer = fc.oneof(
      bytes32,
      fc.bigInt({ min: p - 40n, max: p + 18n }).map((u) => littleEndian(u, 32)),
    );
    fc.assert(
      fc.property(bytes32, peer, fc.boolean(), (own, other, top) => {
        const key = other.slice();
        key[31] = (key[31] as number) | (top ? 0x80 : 0);
        const secret = noble.x25519.shared(own, key);
        expect(hexOrNone(node.x25519.shared(own, key))).toBe(hexOrNone(secret));
        expect(hex(node.x25519.publicKey(own))).toBe(hex(noble.x25519.publicKey(own)));
      }),
      { numRuns: 100 },
    );
  });

  test('on AES-GCM, each opening what the other sealed', () => {
    const nonces = fc.uint8Array({ minLength: 12, maxLength: 12 });
    fc.assert(
      fc.property(bytes32, nonces, fc.uint8Array(), fc.uint8Array(), (key, nonce, aad, data) => {
        const sealed = noblePrimitives.aesGcm.seal({ key, nonce, aad, data });
        expect(hex(node.aesGcm.seal({ key, nonce, aad, data }))).toBe(hex(sealed));
        expect(hexOrNone(node.aesGcm.open({ key, nonce, aad, data: sealed }))).toBe(hex(data));
        expect(hexOrNone(noble.aesGcm.open({ key, nonce, aad, data: sealed }))).toBe(hex(data));
        const short = concatBytes(sealed.subarray(0, -1));
        expect(node.aesGcm.open({ key, nonce, aad, data: short })).toBe(undefined);
        expect(noble.aesGcm.open({ key, nonce, aad, data: short })).toBe(undefined);
      }),
    );
  });
});

function hexOrNone(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : hex(bytes);
}
