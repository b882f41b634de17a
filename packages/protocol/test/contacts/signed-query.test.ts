import { describe, expect, test } from 'vitest';
import {
  checkDeviceStateQuery,
  deviceStateQuerySignatures,
  deviceStateQuerySigningInput,
  encodeBase64url,
  isSignedQuery,
  signDeviceStateQuery,
  signGrant,
  signInvite,
  verifyDeviceStateQuery,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { alice, bob, codeOf, network, now, otherNetwork, tampered, without } from './accounts.ts';

const authorization = signInvite(network, bob, { expires_at: now + 100 });
const query = signDeviceStateQuery(network, alice, {
  account: bob.account,
  authorization,
  signer_certificate: alice.certificate,
  created_at: now,
});
const check = (value: unknown) => codeOf(() => checkDeviceStateQuery(network, value));
const verify = (value: unknown) => codeOf(() => verifyDeviceStateQuery(network, value));

describe('03 §5.2: the signed query', () => {
  test('with an invite and with a grant', () => {
    expect(verify(query)).toBeUndefined();
    const grant = signGrant(network, bob, { grantee: alice.account });
    const facts = { ...query, authorization: grant };
    expect(verify(signDeviceStateQuery(network, alice, facts))).toBeUndefined();
    expect(deviceStateQuerySignatures(network, query).length).toBe(3);
  });

  test.each([
    '$type',
    'account',
    'authorization',
    'signer_certificate',
    'created_at',
    'device_signature',
  ])('without %s it is refused', (name) => {
    expect(check(without(query, name))).toBe('bad_request');
  });

  test.each([
    ['another type', { $type: 'svc.device.state.query' }],
    ['$context', { $context: network.context }],
    [
      '$context in the certificate',
      { signer_certificate: { ...alice.certificate, $context: 'x' } },
    ],
    ['$context in the invite', { authorization: { ...authorization, $context: 'x' } }],
    ['an empty account', { account: '' }],
    ['an account with a wrong checksum', { account: bob.account.replace(/.$/, '8') }],
    ['an authorization that is neither', { authorization: { $type: 'svc.profile' } }],
    ['a malformed invite', { authorization: without(authorization, 'expires_at') }],
    [
      'a key that does not derive the account',
      {
        signer_certificate: {
          ...alice.certificate,
          account_public_key: bob.certificate.account_public_key,
        },
      },
    ],
    ['null in an unknown member', { x: null }],
    ['null deep in an unknown member', { x: [{ y: null }] }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...query, ...change } as JsonObject)).toBe('bad_request');
  });

  test('a certificate over 4,096 bytes is too large', () => {
    const large = { ...alice.certificate, x: 'x'.repeat(4_096) };
    expect(check({ ...query, signer_certificate: large })).toBe('request_too_large');
  });

  test('verifying and signing check the format first', () => {
    const malformed = { ...query, account: 'bob' };
    expect(verify(malformed)).toBe('bad_request');
    expect(codeOf(() => signDeviceStateQuery(network, alice, malformed))).toBe('bad_request');
  });

  test('every signature counts, unknown members too', () => {
    const { device_signature: signature } = query;
    expect(verify({ ...query, device_signature: tampered(signature) })).toBe('invalid_signature');
    expect(verify({ ...query, x: 1 })).toBe('invalid_signature');
    expect(verify({ ...query, created_at: now + 1 })).toBe('invalid_signature');
    const { account_signature: approval } = alice.certificate;
    const forged = { ...alice.certificate, account_signature: tampered(approval) };
    const unsigned = { ...query, signer_certificate: forged };
    const renewed = alice.sign(deviceStateQuerySigningInput(network, unsigned));
    const resigned = { ...unsigned, device_signature: encodeBase64url(renewed) };
    expect(verify(resigned)).toBe('invalid_signature');
    expect(codeOf(() => verifyDeviceStateQuery(otherNetwork, query))).toBe('invalid_signature');
  });

  test('03 §5.1: one member of the signed form makes a query signed, null too', () => {
    expect(isSignedQuery({ account: bob.account })).toBe(false);
    expect(isSignedQuery({ account: bob.account, extra: 1 })).toBe(false);
    for (const name of [
      '$type',
      'authorization',
      'signer_certificate',
      'created_at',
      'device_signature',
    ]) {
      expect(isSignedQuery({ account: bob.account, [name]: null })).toBe(true);
    }
  });
});
