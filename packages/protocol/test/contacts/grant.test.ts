import { describe, expect, test } from 'vitest';
import {
  addGrantSignature,
  type ContactGrant,
  checkGrant,
  checkGrantUse,
  grantSignatures,
  grantSigningInput,
  isGrantExpired,
  signGrant,
  validGrantDevices,
  verifyGrant,
} from '../../src/index.ts';
import { parseJson } from '../../src/json/index.ts';
import {
  alice,
  bob,
  bobOld,
  bobPhone,
  bobState,
  bobTwin,
  carol,
  carolState,
  codeOf,
  network,
  now,
  otherNetwork,
  stateOf,
  tampered,
  without,
} from './accounts.ts';

const expiresAt = 1_760_000_000;
/** 03 appendix A. */
const example: ContactGrant = {
  $type: 'svc.contact.grant',
  grantor: 'neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7',
  grantee: 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo',
  expires_at: expiresAt,
  signatures: {
    dev_LGi9NgK2EbwUKxumZuu1Xw:
      '9hTzTXiXK_x_tpHA4m8XkPMnXpwJYavzsxGxe7EmdBENUsFGAm4gK88v6UZF9MPnsGt5QeVxmpZvG88_YeY7Bg',
  },
};
const signature = example.signatures[bob.deviceId] as string;
const devices = { state: bobState, now };

const check = (value: unknown) => codeOf(() => checkGrant(network, value));
const verify = (value: unknown, expected = {}) =>
  codeOf(() => verifyGrant(network, value, { ...devices, ...expected }));

describe('03 appendix A: the worked grant', () => {
  test('bytes to sign', () => {
    expect(new TextDecoder().decode(grantSigningInput(network, example))).toBe(
      '{"$context":"neo:860833102:0x1234567890abcdef1234567890abcdef12345678",' +
        '"$type":"svc.contact.grant","expires_at":1760000000,' +
        '"grantee":"neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo",' +
        '"grantor":"neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7"}',
    );
  });

  test('signature', () => {
    const made = signGrant(network, bob, { grantee: alice.account, expires_at: expiresAt });
    expect(made).toEqual(example);
    expect(verify(example)).toBeUndefined();
  });
});

describe('03 §16.1: format', () => {
  test('a grant with and without an end passes', () => {
    expect(check(example)).toBeUndefined();
    expect(check(without(example, 'expires_at'))).toBeUndefined();
  });

  test.each(['$type', 'grantor', 'grantee', 'signatures'])('without %s it is refused', (name) => {
    expect(check(without(example, name))).toBe('bad_request');
  });

  test.each([
    ['empty', {}],
    ['an array', [signature]],
    ['null', null],
    ['a key that is no device ID', { device: signature }],
    ['a device ID with pad bits', { dev_LGi9NgK2EbwUKxumZuu1Xx: signature }],
    ['a device ID and a line feed', { 'dev_LGi9NgK2EbwUKxumZuu1Xw\n': signature }],
    ['metadata among the signatures', { [bob.deviceId]: signature, count: signature }],
    ['a member named __proto__', parseJson(`{"__proto__":"${signature}"}`)],
    ['an object for a signature', { [bob.deviceId]: { signature } }],
    ['a number for a signature', { [bob.deviceId]: 1 }],
    ['null for a signature', { [bob.deviceId]: null }],
    ['85 characters', { [bob.deviceId]: signature.slice(1) }],
    ['87 characters', { [bob.deviceId]: `A${signature}` }],
    ['pad bits', { [bob.deviceId]: `${signature.slice(0, -1)}h` }],
    ['padding', { [bob.deviceId]: `${signature}==` }],
  ])('signatures: %s is refused', (_name, signatures) => {
    expect(check({ ...example, signatures })).toBe('bad_request');
  });

  test.each([
    ['another type', { $type: 'svc.contact.grants' }],
    ['$context, the trusted one too', { $context: network.context }],
    ['$context null', { $context: null }],
    ['null as expires_at', { expires_at: null }],
    ['a text as expires_at', { expires_at: '1760000000' }],
    ['null in an unknown member', { x: null }],
    ['null below an unknown member', { x: { y: null } }],
    ['null in an array', { x: [1, null] }],
    ['an account of another chain', { grantee: 'neo:1:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo' }],
    ['a wrong checksum', { grantee: 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWp' }],
    ['a wrong checksum of the grantor', { grantor: example.grantor.replace(/.$/, '8') }],
    ['grantor and grantee the same', { grantee: example.grantor }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...example, ...change })).toBe('bad_request');
  });

  test('a text with a repeated device key never becomes a grant', () => {
    const map = `"${bob.deviceId}":"${signature}"`;
    expect(() => parseJson(`{"signatures":{${map},${map}}}`)).toThrow('repeated member name');
  });
});

describe('03 §16.2: signing', () => {
  test('unknown members are signed; changing anything breaks the signature', () => {
    const grant = signGrant(network, bob, { grantee: alice.account, x: { y: [1] } } as never);
    expect(grant).toMatchObject({ x: { y: [1] } });
    expect(verify(grant)).toBeUndefined();
    expect(verify({ ...grant, x: { y: [2] } })).toBe('forbidden');
    expect(verify({ ...grant, expires_at: expiresAt })).toBe('forbidden');
    expect(verify(without(grant, 'x'))).toBe('forbidden');
  });

  test('another device signs the same body; the first signature stays', () => {
    const both = addGrantSignature(network, example, bobPhone);
    expect(Object.keys(both.signatures)).toEqual([bob.deviceId, bobPhone.deviceId]);
    expect(both.signatures[bob.deviceId]).toBe(signature);
    const valid = validGrantDevices(network, both, devices);
    expect(valid).toEqual([bob.deviceId, bobPhone.deviceId].sort());
  });

  test('what is no grant is not signed', () => {
    const sign = (facts: object) => codeOf(() => signGrant(network, bob, facts as never));
    expect(sign({ grantee: alice.account })).toBeUndefined();
    expect(sign({ grantee: bob.account })).toBe('bad_request');
    expect(sign({ grantee: 'alice' })).toBe('bad_request');
    expect(sign({ grantee: alice.account, expires_at: null })).toBe('bad_request');
  });

  test('a device of another account cannot sign', () => {
    expect(codeOf(() => addGrantSignature(network, example, alice))).toBe('bad_request');
  });

  test('the signature does not cover its key: a device with the same signing key carries it', () => {
    const grant = signGrant(network, bobPhone, { grantee: alice.account });
    const signatures = { [bobTwin.deviceId]: grant.signatures[bobPhone.deviceId] as string };
    expect(verify({ ...grant, signatures })).toBeUndefined();
    const other = { [bob.deviceId]: grant.signatures[bobPhone.deviceId] as string };
    expect(verify({ ...grant, signatures: other })).toBe('forbidden');
  });

  test('a non-current key is never swapped for another device with the same signing key', async () => {
    const grant = signGrant(network, bobPhone, { grantee: alice.account });
    const state = await stateOf(0x02, [bobTwin]);
    expect(verify(grant, { state })).toBe('forbidden');
  });

  test('another network: the signature does not verify', () => {
    expect(codeOf(() => verifyGrant(otherNetwork, example, devices))).toBe('forbidden');
  });
});

describe('03 §16.3: validity', () => {
  test('the last second of the period counts, expires_at does not', () => {
    expect(isGrantExpired(example, expiresAt - 1)).toBe(false);
    expect(isGrantExpired(example, expiresAt)).toBe(true);
    expect(isGrantExpired({}, Number.MAX_SAFE_INTEGER)).toBe(false);
    expect(verify(example, { now: expiresAt - 1 })).toBeUndefined();
    expect(verify(example, { now: expiresAt })).toBe('forbidden');
  });

  test('expected accounts', () => {
    const between = { grantor: bob.account, grantee: alice.account };
    expect(verify(example, between)).toBeUndefined();
    expect(verify(example, { ...between, grantee: carol.account })).toBe('forbidden');
    expect(verify(example, { ...between, grantor: carol.account })).toBe('forbidden');
    expect(codeOf(() => checkGrantUse(example, { ...between, now }))).toBeUndefined();
  });

  test('entries that fail neither authorise nor spoil', () => {
    const forged = tampered(signature);
    expect(verify({ ...example, signatures: { [bob.deviceId]: forged } })).toBe('forbidden');
    const signatures = {
      ...example.signatures,
      [bobPhone.deviceId]: forged,
      [carol.deviceId]: forged,
    };
    expect(verify({ ...example, signatures })).toBeUndefined();
  });

  test('the last good signature of an otherwise forged map is enough', () => {
    const { signatures } = signGrant(network, bobPhone, {
      grantee: alice.account,
      expires_at: expiresAt,
    });
    const map = { [bob.deviceId]: tampered(signature), ...signatures };
    expect(verify({ ...example, signatures: map })).toBeUndefined();
  });

  test('expired and removed devices carry nothing', async () => {
    const old = signGrant(network, bobOld, { grantee: alice.account });
    expect(verify(old)).toBe('forbidden');
    expect(verify(old, { now: now - 1 })).toBeUndefined();
    expect(verify(example, { state: await stateOf(0x02, [bobPhone]) })).toBe('forbidden');
    expect(verify(example, { state: await stateOf(0x02, []) })).toBe('forbidden');
  });

  test('the state of another account carries nothing, not even with the right certificates', () => {
    expect(verify(example, { state: carolState })).toBe('forbidden');
    const mixed = { ...carolState, certificates: bobState.certificates };
    expect(grantSignatures(network, example, { state: mixed, now }).size).toBe(0);
    const foreign = { ...bobState, certificates: [carol.certificate] };
    const signatures = { [carol.deviceId]: signature };
    const grant = { ...example, signatures };
    expect(grantSignatures(network, grant, { state: foreign, now }).size).toBe(0);
  });

  test('the format comes first', () => {
    expect(verify({ ...example, signatures: {} })).toBe('bad_request');
  });
});
