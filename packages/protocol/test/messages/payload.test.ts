import { describe, expect, test } from 'vitest';
import { type EncryptedPayload, encodeBase64url, openPayload, utf8 } from '../../src/index.ts';
import { checkEncryptedPayload, sealPayload } from '../../src/messages/payload.ts';
import { codeOf, drawing, fill, tampered, without } from '../contacts/accounts.ts';
import { implementations } from '../crypto/implementations.ts';

const payload: EncryptedPayload = {
  alg: 'AES-256-GCM',
  nonce: encodeBase64url(fill(1, 12)),
  ciphertext: encodeBase64url(fill(2, 40)),
};
const check = (value: unknown) => codeOf(() => checkEncryptedPayload(value, 'payload'));

describe('04 §4: EncryptedPayload', () => {
  test('a tag alone passes, so do unknown members', () => {
    expect(check(payload)).toBeUndefined();
    expect(check({ ...payload, ciphertext: encodeBase64url(fill(2, 16)), x: 1 })).toBeUndefined();
  });

  test.each(['alg', 'nonce', 'ciphertext'])('without %s it is refused', (name) => {
    expect(check(without(payload, name))).toBe('bad_request');
  });

  test.each([
    ['alg', 'AES-128-GCM'],
    ['alg', 'aes-256-gcm'],
    ['alg', null],
    ['nonce', encodeBase64url(fill(1, 11))],
    ['nonce', encodeBase64url(fill(1, 13))],
    ['nonce', `${encodeBase64url(fill(1, 12)).slice(1)}+`],
    ['nonce', null],
    ['ciphertext', encodeBase64url(fill(2, 15))],
    ['ciphertext', ''],
    ['ciphertext', `${encodeBase64url(fill(2, 40))}=`],
    ['ciphertext', `${encodeBase64url(fill(2, 16)).slice(0, -1)}B`],
    ['ciphertext', `${encodeBase64url(fill(2, 40))}é`],
    ['ciphertext', 1],
    ['ciphertext', null],
    ['$context', 'x'],
  ])('%s %j is refused', (name, value) => {
    expect(check({ ...payload, [name]: value })).toBe('bad_request');
  });

  test.each([null, undefined, [], 'text', 1])('%j is none', (value) => {
    expect(check(value)).toBe('bad_request');
  });
});

describe.each(implementations)('04 §4: sealing and opening on %s', (_name, primitives) => {
  const key = fill(3);
  const aad = utf8('aad');
  const sealed = sealPayload(primitives, {
    key,
    aad,
    plaintext: utf8('{}'),
    random: drawing(fill(4, 12)),
  });

  test('what was sealed opens', () => {
    expect(sealed.nonce).toBe(encodeBase64url(fill(4, 12)));
    expect(openPayload(primitives, sealed, { key, aad })).toEqual(utf8('{}'));
  });

  test('nothing at all can be sealed, and opens', () => {
    const empty = { key, aad, plaintext: utf8(''), random: drawing(fill(5, 12)) };
    const tag = sealPayload(primitives, empty);
    expect(openPayload(primitives, tag, { key, aad })?.length).toBe(0);
  });

  test('nothing opens under another key, nonce, data or text', () => {
    expect(openPayload(primitives, sealed, { key: fill(5), aad })).toBeUndefined();
    expect(openPayload(primitives, sealed, { key, aad: utf8('aae') })).toBeUndefined();
    const { nonce, ciphertext } = sealed;
    for (const other of [
      { ...sealed, nonce: tampered(nonce) },
      { ...sealed, ciphertext: tampered(ciphertext) },
      { ...sealed, ciphertext: ciphertext.slice(0, -4) },
      { ...sealed, nonce: 'AA' },
      { ...sealed, ciphertext: 'AA' },
      { ...sealed, ciphertext: '?' },
      payload,
    ]) {
      expect(openPayload(primitives, other, { key, aad })).toBeUndefined();
    }
  });
});
