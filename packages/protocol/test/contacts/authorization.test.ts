import { describe, expect, test } from 'vitest';
import {
  type Authorization,
  authorizationSignatures,
  checkAuthorization,
  checkAuthorizationUse,
  isGrant,
  signGrant,
  signInvite,
  verifyAuthorization,
} from '../../src/index.ts';
import {
  alice,
  bob,
  bobOld,
  bobPhone,
  bobState,
  carol,
  carolState,
  codeOf,
  network,
  now,
  stateOf,
  tampered,
} from './accounts.ts';

const expiresAt = now + 100;
const grant = signGrant(network, bob, { grantee: alice.account, expires_at: expiresAt });
const invite = signInvite(network, bob, { expires_at: expiresAt });
const use = { target: bob.account, requester: alice.account, now };
const verify = (value: unknown, changes = {}) =>
  codeOf(() => verifyAuthorization(network, value, { ...use, state: bobState, ...changes }));

describe('03 §5.6, 04 §12.2: grant or invite', () => {
  test('grant and invite differ by $type only', () => {
    const check = (value: unknown) => codeOf(() => checkAuthorization(network, value));
    expect([check(grant), check(invite)]).toEqual([undefined, undefined]);
    expect([isGrant(network, grant), isGrant(network, invite)]).toEqual([true, false]);
    for (const wrong of [
      null,
      [],
      'svc.contact.grant',
      {},
      { ...grant, $type: 'svc.contact.invite' },
      { ...invite, $type: 'svc.contact.grant' },
      { ...grant, $type: 'svc.contact.Grant' },
      { ...grant, $context: network.context },
    ]) {
      expect(check(wrong)).toBe('bad_request');
    }
  });

  test('a good one permits', () => {
    expect([verify(grant), verify(invite)]).toEqual([undefined, undefined]);
  });

  test('of other accounts: forbidden', () => {
    expect(verify(grant, { requester: carol.account })).toBe('forbidden');
    expect(verify(grant, { target: carol.account, state: carolState })).toBe('forbidden');
    expect(verify(invite, { target: carol.account, state: carolState })).toBe('forbidden');
  });

  test('any account may use an invite', () => {
    expect(verify(invite, { requester: carol.account })).toBeUndefined();
  });

  test('expired: forbidden, at the very second', () => {
    for (const value of [grant, invite]) {
      expect(verify(value, { now: expiresAt - 1 })).toBeUndefined();
      expect(verify(value, { now: expiresAt })).toBe('forbidden');
      const at = { ...use, now: expiresAt };
      expect(codeOf(() => checkAuthorizationUse(network, value, at))).toBe('forbidden');
    }
  });

  test('a forged invite is an invalid signature, a forged grant is none at all', () => {
    const signature = tampered(invite.device_signature);
    expect(verify({ ...invite, device_signature: signature })).toBe('invalid_signature');
    const signatures = { [bob.deviceId]: signature };
    expect(verify({ ...grant, signatures })).toBe('forbidden');
  });

  test('not signed by a currently valid device: forbidden', async () => {
    const state = await stateOf(0x02, [bobPhone]);
    expect(verify(grant, { state })).toBe('forbidden');
    expect(verify(invite, { state })).toBe('forbidden');
    expect(verify(signGrant(network, bobOld, { grantee: alice.account }))).toBe('forbidden');
  });

  test('for a relay: candidates as data, one of which must verify', () => {
    const devices = { state: bobState, now };
    const signatures = (value: Authorization) => authorizationSignatures(network, value, devices);
    expect(signatures(grant)).toMatchObject({ failure: 'forbidden', anyOf: [{}] });
    expect(signatures(invite)).toMatchObject({ failure: 'invalid_signature', anyOf: [{}] });
    const old = signGrant(network, bobOld, { grantee: alice.account });
    expect(codeOf(() => signatures(old))).toBe('forbidden');
  });

  test('malformed: bad_request before everything else', () => {
    expect(verify({ ...grant, signatures: {} }, { requester: carol.account })).toBe('bad_request');
    expect(verify({ ...invite, expires_at: null }, { target: carol.account })).toBe('bad_request');
  });
});
