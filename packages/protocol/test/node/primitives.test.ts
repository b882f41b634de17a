import { verify } from 'node:crypto';
import { fromHex } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import {
  importPublicKey,
  isAcceptableCheck,
  nodePrimitives,
  nodeRandom,
  verifyOptions,
} from '../../src/node/primitives.ts';

const message = new TextEncoder().encode('post');

describe.each(['ed25519', 'p256'] as const)('%s', (scheme) => {
  const privateKey = nodeRandom(32);
  const publicKey = nodePrimitives[scheme].publicKey(privateKey);
  const signature = nodePrimitives[scheme].sign(privateKey, message);

  test('01 §5: an imported key verifies what the primitives signed, and nothing else', () => {
    const imported = importPublicKey(scheme, publicKey);
    if (imported === undefined) throw new Error('the key does not import');
    const { digest, key } = verifyOptions(scheme, imported);
    expect(verify(digest, message, key, signature)).toBe(true);
    expect(verify(digest, new Uint8Array([0]), key, signature)).toBe(false);
  });

  test('keys of another length, or that are no point, are not imported', () => {
    expect(importPublicKey(scheme, publicKey.subarray(1))).toBeUndefined();
    expect(importPublicKey(scheme, new Uint8Array(publicKey.length))).toBeUndefined();
  });

  test('a key or signature of another length is not acceptable and does not verify', () => {
    const others = (bytes: Uint8Array) => [bytes.subarray(1), new Uint8Array([...bytes, 0])];
    for (const other of others(signature)) {
      expect(isAcceptableCheck({ scheme, publicKey, signature: other })).toBe(false);
      expect(nodePrimitives[scheme].verify(publicKey, message, other)).toBe(false);
    }
    for (const other of others(publicKey)) {
      expect(isAcceptableCheck({ scheme, publicKey: other, signature })).toBe(false);
      expect(nodePrimitives[scheme].verify(other, message, signature)).toBe(false);
    }
    expect(isAcceptableCheck({ scheme, publicKey, signature })).toBe(true);
  });
});

test('01 §5.2: an Ed25519 key of small order is not imported', () => {
  const orderEight = fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05');
  expect(importPublicKey('ed25519', orderEight)).toBeUndefined();
});

test('random bytes have the length asked for and differ', () => {
  expect(nodeRandom(32)).toHaveLength(32);
  expect(nodeRandom(32)).not.toEqual(nodeRandom(32));
});
