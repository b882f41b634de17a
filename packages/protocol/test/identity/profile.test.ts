import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  type AccountProfile,
  checkProfile,
  encodeBase64url,
  hex,
  profileSigningInput,
  signProfile,
  verifyProfile,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import {
  certificate,
  codeOf,
  device,
  network,
  otherAccount,
  otherDevice,
  padded,
  profile,
  tampered,
  without,
} from './appendix.ts';

const check = (value: unknown) => codeOf(() => checkProfile(network, value));
const verify = (value: unknown) => codeOf(() => verifyProfile(network, value, certificate));
const avatar = {
  uri: 'https://example.com/a.png',
  hash: 'sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  content_type: 'image/png',
  size: 68,
};

function signed(members: Record<string, unknown>): AccountProfile {
  const unsigned = { ...(without(profile, 'device_signature') as AccountProfile), ...members };
  const signature = device.sign(profileSigningInput(network, unsigned));
  return { ...unsigned, device_signature: encodeBase64url(signature) };
}

describe('01 §11: AccountProfile', () => {
  test('01 appendix A: input and signature of the example', () => {
    const input = profileSigningInput(network, profile);
    expect([input.length, hex(noblePrimitives.sha256(input))]).toEqual([
      226,
      '3b3e1ae40370cb69681d13429b7239ce2ea53078e806d55748be63f48cf7d747',
    ]);
    expect(verify(profile)).toBeUndefined();
    const made = signProfile(network, device, {
      account: profile.account,
      nickname: 'Ann é😀',
      public_discovery: true,
      updated_at: 1735689700,
    });
    expect(canonicalJson(made)).toBe(canonicalJson(profile));
  });

  test.each(['$type', 'account', 'public_discovery', 'updated_at', 'device_signature'])(
    'a profile without %s is refused',
    (name) => {
      expect(check(without(profile, name))).toBe('bad_request');
    },
  );

  test('nickname, avatar and bio may be absent', () => {
    const bare = without(profile, 'nickname', 'device_signature') as AccountProfile;
    expect(verify(signProfile(network, device, bare))).toBeUndefined();
  });

  test.each([
    ['$type', 'svc.profile.v1'],
    ['account', 'neo:860833102:NgaxELHoZFpQWNwd74Fvq4wF3qz57WTfpq'],
    ['account', 'neo:860833103:NgaxELHoZFpQWNwd74Fvq4wF3qz57WTfpp'],
    ['nickname', 1],
    ['bio', []],
    ['public_discovery', 'true'],
    ['public_discovery', 1],
    ['updated_at', '1735689700'],
    ['updated_at', 1.5],
    ['device_signature', 'x'],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(check({ ...profile, [name]: value })).toBe('bad_request');
  });

  test('null is refused in every member', () => {
    for (const name of [...Object.keys(profile), 'avatar', 'bio', 'zz']) {
      expect(check({ ...profile, [name]: null })).toBe('bad_request');
    }
  });

  test.each([
    ['nickname', 256],
    ['bio', 2_048],
  ])('%s has at most %i bytes of UTF-8', (name, max) => {
    for (const [text, code] of [
      ['x'.repeat(max - 1), undefined],
      ['x'.repeat(max), undefined],
      ['x'.repeat(max + 1), 'bad_request'],
      ['é'.repeat(max / 2), undefined],
      [`é${'x'.repeat(max - 1)}`, 'bad_request'],
      ['😀'.repeat(max / 4), undefined],
      [`${'😀'.repeat(max / 4)}x`, 'bad_request'],
    ] as const) {
      expect(verify(signed({ [name]: text }))).toBe(code);
    }
  });

  test.each(['nickname', 'bio'])('%s may be empty, but not only white space', (name) => {
    expect(verify(signed({ [name]: '' }))).toBeUndefined();
    for (const text of [' ', '\u0085', '\u3000\t', '\u2028']) {
      expect(check(signed({ [name]: text }))).toBe('bad_request');
    }
    // U+FEFF and U+200B are not on the list of white space.
    for (const text of ['\ufeff', '\u200b', ' x ']) {
      expect(verify(signed({ [name]: text }))).toBeUndefined();
    }
  });

  test('an avatar is a content reference to an image', () => {
    const encryption = {
      alg: 'AES-256-GCM',
      key: encodeBase64url(new Uint8Array(32)),
      nonce: encodeBase64url(new Uint8Array(12)),
    };
    for (const good of [
      avatar,
      { ...avatar, content_type: 'IMAGE/svg+xml; q=1' },
      { ...avatar, encryption },
    ]) {
      expect(verify(signed({ avatar: good }))).toBeUndefined();
    }
    for (const bad of [
      { ...avatar, content_type: 'text/plain' },
      { ...avatar, content_type: 'image' },
      { ...avatar, content_type: 'imagery/png' },
      { ...avatar, uri: 'http://example.com/a.png' },
      { ...avatar, size: -1 },
      { ...avatar, hash: 'sha256:AA' },
      { ...avatar, encryption: { ...encryption, alg: 'AES-128-GCM' } },
      { ...avatar, encryption: null },
      without(avatar, 'hash'),
      'https://example.com/a.png',
    ]) {
      expect(check(signed({ avatar: bad }))).toBe('bad_request');
    }
  });

  test('F1: over 8,192 bytes, unknown members included, is request_too_large', () => {
    const base = signed({ avatar, zz: '' });
    const padding = (bytes: number) => padded(base, bytes).zz;
    expect(verify(signed({ avatar, zz: padding(8_191) }))).toBeUndefined();
    expect(verify(signed({ avatar, zz: padding(8_192) }))).toBeUndefined();
    expect(verify(signed({ avatar, zz: padding(8_193) }))).toBe('request_too_large');
  });

  test('F2: the device signs everything else, unknown members included', () => {
    expect(verify(signed({ zz: { a: [1] } }))).toBeUndefined();
    for (const change of [{ zz: 1 }, { nickname: 'Bob' }, { updated_at: 1 }]) {
      expect(verify({ ...profile, ...change })).toBe('invalid_signature');
    }
    const device_signature = tampered(profile.device_signature);
    expect(verify({ ...profile, device_signature })).toBe('invalid_signature');
  });

  test('F4: any safe integer is a well-formed time; recency is for the relay', () => {
    expect(verify(signed({ updated_at: -1 }))).toBeUndefined();
    expect(check(signed({ updated_at: 0 }))).toBeUndefined();
    expect(check({ ...profile, updated_at: 2 ** 53 })).toBe('bad_request');
  });

  test('F6: the key is that of the certificate, and the account is its account', () => {
    const otherKey = { ...certificate, signing_public_key: otherDevice.signingPublicKey };
    expect(codeOf(() => verifyProfile(network, profile, otherKey))).toBe('invalid_signature');
    const otherOwner = { ...certificate, account: otherAccount.account };
    expect(codeOf(() => verifyProfile(network, profile, otherOwner))).toBe('bad_request');
  });

  test('a producer cannot make one over the limits', () => {
    const facts = { account: profile.account, public_discovery: false, updated_at: 1 };
    expect(codeOf(() => signProfile(network, device, { ...facts, nickname: ' ' }))).toBe(
      'bad_request',
    );
  });
});
