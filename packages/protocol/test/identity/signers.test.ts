import { describe, expect, test } from 'vitest';
import { noblePrimitives, signatureCheck, verifySignatures } from '../../src/crypto/index.ts';
import {
  accountSigner,
  decodeBase64url,
  deviceSigner,
  encodeBase64url,
  utf8,
} from '../../src/index.ts';
import { account, codeOf, counting, device, network, tampered } from './appendix.ts';

const message = utf8('bytes as they are');

describe('01 §5: signers', () => {
  test('5.1: an account signs the bytes without any prefix, with r and s of 32 bytes each', async () => {
    const signature = await account.sign(message);
    expect(signature).toHaveLength(64);
    const key = decodeBase64url(account.publicKey) as Uint8Array;
    expect(key).toHaveLength(33);
    expect(noblePrimitives.p256.verify(key, message, signature)).toBe(true);
    expect(noblePrimitives.p256.verify(key, utf8('other'), signature)).toBe(false);
  });

  test('5.2: a device signs with Ed25519', () => {
    const signature = device.sign(message);
    expect(signature).toHaveLength(64);
    const key = decodeBase64url(device.signingPublicKey) as Uint8Array;
    expect(noblePrimitives.ed25519.verify(key, message, signature)).toBe(true);
  });

  test('a signer does not expose its private key', () => {
    const keys = { signingSeed: counting(0x21), encryptionKey: counting(0x41) };
    for (const signer of [accountSigner(network, counting(1)), deviceSigner(network, keys)]) {
      const shown = Object.values(signer).filter((value) => typeof value !== 'function');
      expect(shown.every((value) => typeof value === 'string')).toBe(true);
    }
  });
});

describe('01 §2.5: signatures in their text form', () => {
  const signature = 'A'.repeat(86);
  const parts = {
    scheme: 'ed25519' as const,
    publicKey: device.signingPublicKey,
    message,
    signature,
  };

  test('key and signature are decoded, the message stays as it is', () => {
    expect(signatureCheck(parts)).toEqual({
      scheme: 'ed25519',
      publicKey: decodeBase64url(device.signingPublicKey),
      message,
      signature: new Uint8Array(64),
    });
  });

  test('text that is not canonical base64url is bad_request, not a failed signature', () => {
    for (const bad of [`${signature}=`, `${signature.slice(0, 85)}B`, '*', `${signature}AAA`]) {
      expect(codeOf(() => signatureCheck({ ...parts, signature: bad }))).toBe('bad_request');
      expect(codeOf(() => signatureCheck({ ...parts, publicKey: bad }))).toBe('bad_request');
    }
  });

  test('all signatures must verify, and the error names the object', () => {
    const good = { ...parts, signature: encodeBase64url(device.sign(message)) };
    const bad = { ...good, signature: tampered(good.signature) };
    const verify = (...checks: (typeof good)[]) =>
      verifySignatures(noblePrimitives, checks.map(signatureCheck), 'thing');
    expect(() => verify(good, good)).not.toThrow();
    expect(codeOf(() => verify(good, bad))).toBe('invalid_signature');
    expect(() => verify(bad)).toThrow(/^thing: /);
  });
});
