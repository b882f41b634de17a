import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  checkDeviceState,
  checkObject,
  encodeBase64url,
  Network,
  sha256Text,
  Type,
  utf8,
  verifyDeviceState,
  verifyProfile,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import {
  account,
  certificate,
  codeOf,
  context,
  network,
  otherChain,
  otherRegistry,
  profile,
  state,
  without,
} from './appendix.ts';

const registry = '0x0123456789abcdef0123456789abcdef01234567';
const build = (text: unknown) =>
  new Network({ context: text as string, primitives: noblePrimitives });
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

describe('01 §1: network context', () => {
  test.each([
    [`neo:0:${registry}`, '0'],
    [`neo:860833102:${registry}`, '860833102'],
    [`neo:4294967295:${registry}`, '4294967295'],
  ])('N1: %j is a context', (text, magic) => {
    expect(build(text)).toMatchObject({ context: text, magic, registry });
  });

  test.each([
    `neo:4294967296:${registry}`,
    `neo:9999999999:${registry}`,
    `neo:10000000000:${registry}`,
    `neo:00:${registry}`,
    `neo:0860833102:${registry}`,
    `neo:-1:${registry}`,
    `neo:+1:${registry}`,
    `neo:1e3:${registry}`,
    `neo::${registry}`,
    `Neo:1:${registry}`,
    `eip155:1:${registry}`,
    `neo:1:${registry.toUpperCase()}`,
    `neo:1:${registry.replace('a', 'A')}`,
    `neo:1:${registry.slice(0, -1)}`,
    `neo:1:${registry}0`,
    `neo:1:${registry.slice(2)}`,
    ` neo:1:${registry}`,
    `neo:1:${registry} `,
    `neo:1:${registry}\n`,
    `neo:１:${registry}`,
    '',
  ])('N1, N2: %j is refused, nothing is repaired', (text) => {
    expect(() => build(text)).toThrow(TypeError);
  });

  test('the service word is lowercase letters and digits, and is kept in one place', () => {
    const other = new Network({ context, word: 'posthouse', primitives: noblePrimitives });
    expect(other.type('profile')).toBe('posthouse.profile');
    expect(other.pathPrefix).toBe('/posthouse/v1');
    expect(other.sessionHeader).toBe('x-posthouse-session');
    expect(other.salt('keybox-salt/v1')).toEqual(
      noblePrimitives.sha256(utf8('Posthouse/keybox-salt/v1')),
    );
    expect(network.salt('keybox-salt/v1')).toEqual(
      noblePrimitives.sha256(utf8('Svc/keybox-salt/v1')),
    );
    for (const word of ['', 'Svc', '1svc', 's-v', 'svc.']) {
      expect(() => new Network({ context, word, primitives: noblePrimitives })).toThrow(TypeError);
    }
  });

  test('N3, N4: an object of another chain or registry does not verify', () => {
    for (const other of [otherChain, otherRegistry]) {
      expect(codeOf(() => verifyDeviceState(other, state))).toBeDefined();
      expect(codeOf(() => verifyProfile(other, profile, certificate))).toBeDefined();
    }
    expect(codeOf(() => verifyProfile(otherRegistry, profile, certificate))).toBe(
      'invalid_signature',
    );
  });

  test('N6: the context is in the inputs and never in the object', () => {
    expect(textOf(network.bytes({ b: 1 }))).toBe(`{"$context":"${context}","b":1}`);
    expect(canonicalJson(state)).not.toContain('$context');
  });
});

describe('01 §4: network-bound inputs', () => {
  test('K1: $context is the trusted one and is at the root', () => {
    const input = JSON.parse(textOf(network.bytes(state, ['account_signature'])));
    expect(input.$context).toBe(context);
    expect(input.certificates[0]).toEqual(certificate);
  });

  test('K2: $context in an object is refused before any input is built', () => {
    for (const value of [context, otherChain.context, null, 1]) {
      expect(codeOf(() => checkDeviceState(network, { ...state, $context: value }))).toBe(
        'bad_request',
      );
      const nested = { ...state, certificates: [{ ...certificate, $context: value }] };
      expect(codeOf(() => checkDeviceState(network, nested))).toBe('bad_request');
    }
  });

  test('K2: a $context inside an unknown value is that value and no object of the protocol', () => {
    const value = { ...state, zz: { $context: context } };
    expect(codeOf(() => checkDeviceState(network, value))).toBeUndefined();
  });

  test('K4: only root members are left out', () => {
    const nested = { account_signature: 'x', device_signature: 'y' };
    const text = textOf(
      network.bytes({ a: nested, account_signature: 'z' }, ['account_signature']),
    );
    expect(text).toBe(
      `{"$context":"${context}","a":{"account_signature":"x","device_signature":"y"}}`,
    );
  });

  test('K5: the hash of a complete object covers everything, signature and unknown members', () => {
    expect(network.hash(state)).toBe('sha256:qqQEhtpl-2sfIiJ-VE-0qy9GE2KHypz6Xp7HoPUdy10');
    const hashes = [state, { ...state, zz: 1 }, { ...state, account_signature: 'x' }];
    expect(new Set(hashes.map((object) => network.hash(object))).size).toBe(3);
    expect(otherRegistry.hash(state)).not.toBe(network.hash(state));
  });

  test('K6: digests of raw bytes are not bound to a network', () => {
    expect(sha256Text(noblePrimitives, utf8(''))).toBe(
      'sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
    );
  });

  test('K7: a signature over a shorter input does not verify', async () => {
    for (const name of ['$context', '$type']) {
      const whole = { ...state, $context: context };
      const message = utf8(canonicalJson(without(whole, name, 'account_signature') as JsonObject));
      const account_signature = encodeBase64url(await account.sign(message));
      expect(codeOf(() => verifyDeviceState(network, { ...state, account_signature }))).toBe(
        'invalid_signature',
      );
    }
    const message = network.bytes(state, ['account_signature']);
    const account_signature = encodeBase64url(await account.sign(message));
    expect(
      codeOf(() => verifyDeviceState(network, { ...state, account_signature })),
    ).toBeUndefined();
  });

  test('building an input changes nothing in the object', () => {
    const before = canonicalJson(state);
    network.bytes(state, ['account_signature', 'certificates']);
    expect(canonicalJson(state)).toBe(before);
  });
});

describe('01 §2.6: object types', () => {
  const definition = { type: 'thing', schema: Type.Object({ $type: Type.String() }) };
  const check = (value: unknown) => codeOf(() => checkObject(network, definition, value));

  test('Y1: the type matches completely and by case', () => {
    expect(check({ $type: 'svc.thing' })).toBeUndefined();
    for (const $type of [
      'svc.Thing',
      'SVC.thing',
      'svc.thin',
      'svc.things',
      'thing',
      '',
      ' svc.thing',
    ]) {
      expect(check({ $type })).toBe('bad_request');
    }
  });

  test('Y2: a plain member called type is no alias', () => {
    expect(check({ type: 'svc.thing' })).toBe('bad_request');
    expect(check({ $type: 'svc.other', type: 'svc.thing' })).toBe('bad_request');
    expect(check({ $type: 'svc.thing', type: 'svc.other' })).toBeUndefined();
  });

  test('Y3: a type with a version at its end is an unknown type', () => {
    expect(check({ $type: 'svc.thing.v1' })).toBe('bad_request');
  });

  test('Y4: a nested object with its own type is checked as that type', () => {
    for (const wrong of [{ $type: 'svc.profile' }, { account: 'x' }, { expires_at: 0 }]) {
      const nested = { ...state, certificates: [{ ...certificate, ...wrong }] };
      expect(codeOf(() => checkDeviceState(network, nested))).toBe('bad_request');
    }
  });

  test('Y5: every input has the fixed type of its own network', () => {
    const other = new Network({ context, word: 'other', primitives: noblePrimitives });
    expect(codeOf(() => verifyDeviceState(other, state))).toBe('bad_request');
  });

  test('Y6: unknown members and the type stay in the covered scope', () => {
    expect(codeOf(() => verifyDeviceState(network, { ...state, zz: [] }))).toBe(
      'invalid_signature',
    );
  });

  test.each([
    [{}],
    [{ $type: null }],
    [{ $type: 1 }],
    [{ $type: ['svc.thing'] }],
    [{ $type: { name: 'svc.thing' } }],
  ])('Y7: a missing type, or one that is no string, is refused: %j', (value) => {
    expect(check(value)).toBe('bad_request');
  });
});
