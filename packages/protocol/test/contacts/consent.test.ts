import { describe, expect, test } from 'vitest';
import { checkStateSuccession } from '../../src/contacts/consent.ts';
import {
  addGrantSignature,
  type ContactConsent,
  checkConsent,
  signGrant,
  verifyConsent,
} from '../../src/index.ts';
import {
  alice,
  aliceState,
  bob,
  bobOld,
  bobPhone,
  bobState,
  carol,
  codeOf,
  network,
  now,
  stateOf,
  tampered,
  without,
} from './accounts.ts';

const envelope = { from: bob.account, from_device_id: bob.deviceId, to: alice.account };
const grant = signGrant(network, bob, { grantee: alice.account, expires_at: now + 100 });
const consent: ContactConsent = {
  $type: network.type('contact.consent'),
  device_state: bobState,
  grant,
  note: 'Bob from the library',
};
const check = (value: unknown) => codeOf(() => checkConsent(network, value));
const verify = (value: unknown, context = {}) =>
  codeOf(() => verifyConsent(network, value, { envelope, now, ...context }));

describe('03 §15.1: format of a consent', () => {
  test('with and without a note', () => {
    expect(check(consent)).toBeUndefined();
    expect(check(without(consent, 'note'))).toBeUndefined();
  });

  test.each(['$type', 'device_state', 'grant'])('without %s it is refused', (name) => {
    expect(check(without(consent, name))).toBe('bad_request');
  });

  test.each([
    ['another type', { $type: 'svc.contact.consent.v2' }],
    ['$context', { $context: network.context }],
    ['$context in the state', { device_state: { ...bobState, $context: 'x' } }],
    ['$context in the grant', { grant: { ...grant, $context: 'x' } }],
    ['a null note', { note: null }],
    ['an empty note', { note: '' }],
    ['a note of white space', { note: ' \u3000\u0085' }],
    ['a grant of another type', { grant: { ...grant, $type: 'svc.contact.invite' } }],
    ['null in an unknown member', { x: { y: null } }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...consent, ...change })).toBe('bad_request');
  });

  test('a note of 1,024 bytes passes, of 1,025 not', () => {
    expect(check({ ...consent, note: 'é'.repeat(512) })).toBeUndefined();
    expect(check({ ...consent, note: `${'é'.repeat(512)}x` })).toBe('bad_request');
  });

  test('a note that is no white space only by U+FEFF passes', () => {
    expect(check({ ...consent, note: '\ufeff' })).toBeUndefined();
  });
});

describe('03 §15.1: verification against the envelope', () => {
  test('a good consent, with nothing known and with the same state known', () => {
    expect(verify(consent)).toBeUndefined();
    expect(verify(consent, { known: bobState })).toBeUndefined();
  });

  test('the format comes first', () => {
    expect(verify({ ...consent, note: '' })).toBe('bad_request');
    expect(verify({ ...consent, $type: 'svc.contact.grant' })).toBe('bad_request');
  });

  test('state or grant of another account', async () => {
    expect(verify({ ...consent, device_state: aliceState })).toBe('bad_request');
    const toCarol = signGrant(network, bob, { grantee: carol.account });
    expect(verify({ ...consent, grant: toCarol })).toBe('bad_request');
    const fromAlice = signGrant(network, alice, { grantee: bob.account });
    expect(verify({ ...consent, grant: fromAlice })).toBe('bad_request');
    const relayed = { ...envelope, from: carol.account, from_device_id: carol.deviceId };
    expect(verify(consent, { envelope: relayed })).toBe('bad_request');
  });

  test('signatures of state and grant count separately', () => {
    const { account_signature: signature } = bobState;
    const state = { ...bobState, account_signature: tampered(signature) };
    expect(verify({ ...consent, device_state: state })).toBe('invalid_signature');
    const signatures = { [bob.deviceId]: tampered(grant.signatures[bob.deviceId] as string) };
    expect(verify({ ...consent, grant: { ...grant, signatures } })).toBe('invalid_signature');
  });

  test('the grant needs the sending device’s signature; another device’s is not enough', () => {
    const byPhone = signGrant(network, bobPhone, { grantee: alice.account });
    expect(verify({ ...consent, grant: byPhone })).toBe('invalid_signature');
    const both = addGrantSignature(network, byPhone, bob);
    expect(verify({ ...consent, grant: both })).toBeUndefined();
  });

  test('the sending device must be currently valid in the state', async () => {
    const byOld = signGrant(network, bobOld, { grantee: alice.account });
    const old = { ...envelope, from_device_id: bobOld.deviceId };
    expect(verify({ ...consent, grant: byOld }, { envelope: old })).toBe('device_unknown');
    const before = { envelope: old, now: now - 1 };
    expect(verify({ ...consent, grant: byOld }, before)).toBeUndefined();
    const state = await stateOf(0x02, [bobPhone]);
    expect(verify({ ...consent, device_state: state })).toBe('device_unknown');
  });

  test('an expired grant', () => {
    expect(verify(consent, { now: now + 99 })).toBeUndefined();
    expect(verify(consent, { now: now + 100 })).toBe('forbidden');
  });

  test('01 §10.2: lower revision, equal with other content, higher', async () => {
    const newer = await stateOf(0x02, [bob], 2);
    const twin = await stateOf(0x02, [bob], 1);
    expect(verify(consent, { known: newer })).toBe('stale_state');
    expect(verify(consent, { known: twin })).toBe('state_conflict');
    expect(verify({ ...consent, device_state: newer }, { known: bobState })).toBeUndefined();
    expect(codeOf(() => checkStateSuccession(bobState, { ...bobState }))).toBeUndefined();
    const signature = tampered(bobState.account_signature);
    const other = { ...bobState, account_signature: signature };
    expect(codeOf(() => checkStateSuccession(bobState, other))).toBe('state_conflict');
  });
});
